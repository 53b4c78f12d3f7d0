"""The API server's validation of ResourceSlices, to find errors before a write. Pure; used by publisher, roles and live hardware.

A hardware file is checked when it is read. This finds what results from combinations: rules of the file, run-time changes and mutants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from fake_driver.devices import node_selectors, request_policies
from fake_driver.devices.model import RequestPolicy
from fake_driver.errors import ConfigurationError
from fake_driver.name_patterns import DNS_LABEL, DNS_SUBDOMAIN, LABEL_KEY, LABEL_VALUE, QUALIFIED_NAME, matches
from fake_driver.publishing.slices import MAX_COUNTER_SETS, MAX_DEVICES, MAX_DEVICES_WITH_TAINTS_OR_COUNTERS, Object

_LISTS = ("bools", "ints", "strings", "versions")
_MAX_LISTED = 50
_MAX_CONDITIONS = 4
_TYPES = {"bool", "int", "string", "version", *_LISTS}


def find_problems(slices: Iterable[Object]) -> list[str]:
    """Return the problems of slices; an empty list if the API server will accept them."""
    return [f"slice {each['metadata']['name']}: {problem}" for each in slices for problem in _slice(each)]


def require_valid(slices: Iterable[Object], file: str) -> None:
    """Raise ConfigurationError if an API server would refuse the slices of a hardware file."""
    problems = find_problems(slices)
    if problems:
        more = [f"and {len(problems) - _MAX_LISTED} more"] if len(problems) > _MAX_LISTED else []
        listed = "\n".join(f"  {problem}" for problem in (*problems[:_MAX_LISTED], *more))
        raise ConfigurationError(f"an API server would refuse the slices of {file}:\n{listed}")


def _slice(slice_: Object) -> Iterator[str]:
    spec, devices = slice_["spec"], _devices(slice_)
    if not matches(DNS_SUBDOMAIN, slice_["metadata"]["name"]):
        yield "its name is not a DNS subdomain"
    if sum(key in spec for key in ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")) != 1:
        yield "it must have exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection"
    if "nodeSelector" in spec:
        yield from (f"its nodeSelector {problem}" for problem in node_selectors.problems(spec["nodeSelector"]))
    if "devices" in spec and "sharedCounters" in spec:
        yield "it has both devices and sharedCounters"
    limit = MAX_DEVICES_WITH_TAINTS_OR_COUNTERS if any(map(_has_taints_or_counters, devices)) else MAX_DEVICES
    if len(devices) > limit:
        yield f"it has {len(devices)} devices, but may have {limit}"
    names = Counter(device["name"] for device in devices)
    yield from (f"it has {times} devices with the name {name}" for name, times in names.items() if times > 1)
    sets = spec.get("sharedCounters") or []
    if len(sets) > MAX_COUNTER_SETS:
        yield f"it has {len(sets)} counter sets, but may have {MAX_COUNTER_SETS}"
    for each in sets:
        if not matches(DNS_LABEL, each["name"]) or not _are_counters(each["counters"]):
            yield f"its counter set {each['name']} is malformed or has more than 32 counters"
    for device in devices:
        yield from (f"device {device['name']}: {problem}" for problem in _device(device))


def _device(device: Object) -> Iterator[str]:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if not matches(DNS_LABEL, device["name"]):
        yield "its name is not a DNS label"
    if len(attributes) + len(capacity) > 32:
        yield f"it has {len(attributes) + len(capacity)} attributes and capacities, but may have 32"
    for name in (*attributes, *capacity):
        if not matches(QUALIFIED_NAME, name):
            yield f"{name!r} is not a valid name of an attribute or capacity"
    if sum(map(_size, attributes.values())) > 48:
        yield "its attributes have more than 48 values"
    for name, value in attributes.items():
        if len(value) != 1 or not value.keys() <= _TYPES or not _size(value):
            yield f"attribute {name} must have exactly one value"
    taints = device.get("taints") or []
    if len(taints) > 16:
        yield f"it has {len(taints)} taints, but may have 16"
    for taint in taints:
        if not (matches(LABEL_KEY, taint["key"]) and (not taint.get("value") or matches(LABEL_VALUE, taint["value"]))):
            yield f"its taint {taint['key']!r} is malformed"
    consumed = device.get("consumesCounters") or []
    if len(consumed) > 2 or not all(_are_counters(each["counters"]) for each in consumed):
        yield "it consumes from more than 2 counter sets, or from more than 32 counters of one set"
    yield from _policies(device)
    yield from _conditions(device)


def _policies(device: Object) -> Iterator[str]:
    for name, capacity in (device.get("capacity") or {}).items():
        policy = capacity.get("requestPolicy")
        if policy and not device.get("allowMultipleAllocations"):
            yield f"its capacity {name} has a requestPolicy, which needs allowMultipleAllocations"
        if policy:
            problems = request_policies.problems(_policy(policy), capacity["value"])
            yield from (f"the requestPolicy of its capacity {name} {problem}" for problem in problems)


def _policy(policy: Object) -> RequestPolicy:
    valid_range = policy.get("validRange") or {}
    bounds = (valid_range.get(key, "") for key in ("min", "max", "step"))
    return RequestPolicy(policy.get("default", ""), tuple(policy.get("validValues") or ()), *bounds)


def _conditions(device: Object) -> Iterator[str]:
    conditions, failures = device.get("bindingConditions") or [], device.get("bindingFailureConditions") or []
    names = [*conditions, *failures]
    if bool(conditions) != bool(failures):
        yield "it must have both bindingConditions and bindingFailureConditions, or neither"
    if max(len(conditions), len(failures)) > _MAX_CONDITIONS:
        yield f"it has more than {_MAX_CONDITIONS} bindingConditions or bindingFailureConditions"
    if not all(matches(LABEL_KEY, name) for name in names) or len(set(names)) != len(names):
        yield "its bindingConditions and bindingFailureConditions must be label keys, all different"


def _devices(slice_: Object) -> list[Object]:
    return slice_["spec"].get("devices") or []


def _has_taints_or_counters(device: Object) -> bool:
    lists = (set(value) & set(_LISTS) for value in (device.get("attributes") or {}).values())
    return bool(device.get("taints") or device.get("consumesCounters") or any(lists))


def _size(value: Object) -> int:
    return sum(len(each) if isinstance(each, list) else 1 for each in value.values())


def _are_counters(counters: Object) -> bool:
    return 1 <= len(counters) <= 32 and all(matches(DNS_LABEL, name) for name in counters)
