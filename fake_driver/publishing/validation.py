"""What the API server would refuse in a ResourceSlice, known before the write. Pure; the publisher asks it, and its tests hold on to it.

A hardware file is checked when it is read; this is for what adds up on a node or came after: changes in the file, at run time, and faults.
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
_MOST_TOLD = 50
_MOST_CONDITIONS = 4
_TYPES = {"bool", "int", "string", "version", *_LISTS}


def find_problems(slices: Iterable[Object]) -> list[str]:
    """What is wrong with slices; nothing when the API server will take them."""
    return [f"slice {each['metadata']['name']}: {problem}" for each in slices for problem in _slice(each)]


def require_valid(slices: Iterable[Object], file: str) -> None:
    """ConfigurationError where an API server would refuse what a hardware file means."""
    wrong = find_problems(slices)
    if wrong:
        more = [f"and {len(wrong) - _MOST_TOLD} more"] if len(wrong) > _MOST_TOLD else []
        listed = "\n".join(f"  {problem}" for problem in (*wrong[:_MOST_TOLD], *more))
        raise ConfigurationError(f"an API server would refuse what {file} describes:\n{listed}")


def _slice(slice_: Object) -> Iterator[str]:
    spec, devices = slice_["spec"], _devices(slice_)
    if not matches(DNS_SUBDOMAIN, slice_["metadata"]["name"]):
        yield "its name is not a DNS subdomain"
    if sum(key in spec for key in ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")) != 1:
        yield "it must say exactly once where its devices are"
    if "nodeSelector" in spec:
        yield from (f"its nodeSelector {problem}" for problem in node_selectors.problems(spec["nodeSelector"]))
    if "devices" in spec and "sharedCounters" in spec:
        yield "it has devices and sharedCounters"
    most = MAX_DEVICES_WITH_TAINTS_OR_COUNTERS if any(map(_demanding, devices)) else MAX_DEVICES
    if len(devices) > most:
        yield f"it has {len(devices)} devices, but may have {most}"
    names = Counter(device["name"] for device in devices)
    yield from (f"it has {times} devices with the name {name}" for name, times in names.items() if times > 1)
    sets = spec.get("sharedCounters") or []
    if len(sets) > MAX_COUNTER_SETS:
        yield f"it has {len(sets)} sets of counters, but may have {MAX_COUNTER_SETS}"
    for each in sets:
        if not matches(DNS_LABEL, each["name"]) or not _are_counters(each["counters"]):
            yield f"its set of counters {each['name']} is malformed, or has more than 32"
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
            yield f"{name!r} is no name of an attribute or capacity"
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
    draws = device.get("consumesCounters") or []
    if len(draws) > 2 or not all(_are_counters(draw["counters"]) for draw in draws):
        yield "it draws from more than 2 sets of counters, or from more than 32 counters of one"
    yield from _policies(device)
    yield from _conditions(device)


def _policies(device: Object) -> Iterator[str]:
    for name, said in (device.get("capacity") or {}).items():
        policy = said.get("requestPolicy")
        if policy and not device.get("allowMultipleAllocations"):
            yield f"its capacity {name} has a requestPolicy, which needs allowMultipleAllocations"
        if policy:
            wrong = request_policies.problems(_policy(policy), said["value"])
            yield from (f"the requestPolicy of its capacity {name} {problem}" for problem in wrong)


def _policy(said: Object) -> RequestPolicy:
    within = said.get("validRange") or {}
    bounds = (within.get(key, "") for key in ("min", "max", "step"))
    return RequestPolicy(said.get("default", ""), tuple(said.get("validValues") or ()), *bounds)


def _conditions(device: Object) -> Iterator[str]:
    both = [device.get(key) or [] for key in ("bindingConditions", "bindingFailureConditions")]
    named = [name for names in both for name in names]
    if bool(both[0]) != bool(both[1]):
        yield "its bindingConditions and bindingFailureConditions need each other"
    if max(map(len, both)) > _MOST_CONDITIONS:
        yield f"it has more than {_MOST_CONDITIONS} bindingConditions or bindingFailureConditions"
    if not all(matches(LABEL_KEY, name) for name in named) or len(set(named)) != len(named):
        yield "its bindingConditions and bindingFailureConditions must be names of labels, all different"


def _devices(slice_: Object) -> list[Object]:
    return slice_["spec"].get("devices") or []


def _demanding(device: Object) -> bool:
    lists = (set(value) & set(_LISTS) for value in (device.get("attributes") or {}).values())
    return bool(device.get("taints") or device.get("consumesCounters") or any(lists))


def _size(value: Object) -> int:
    return sum(len(each) if isinstance(each, list) else 1 for each in value.values())


def _are_counters(counters: Object) -> bool:
    return 1 <= len(counters) <= 32 and all(matches(DNS_LABEL, name) for name in counters)
