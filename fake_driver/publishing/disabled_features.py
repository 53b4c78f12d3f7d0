"""How ResourceSlices must differ where the API server has a feature gate off. Pure; used by the publisher.

An API server drops the fields of a feature that is off without an error, or refuses the whole slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fake_driver.devices.counters import exceeds_counters
from fake_driver.devices.model import CounterConsumption, Quantities
from fake_driver.publishing.planner import comparable
from fake_driver.publishing.slices import Object, pool_name, with_devices

# The feature gate that each field needs; without it, the API server drops the field silently.
_GATES = {
    "taints": "DRADeviceTaints",
    "sharedCounters": "DRAPartitionableDevices",
    "consumesCounters": "DRAPartitionableDevices",
    "allowMultipleAllocations": "DRAConsumableCapacity",
    "requestPolicy": "DRAConsumableCapacity",
    "bindsToNode": "DRADeviceBindingConditions",
    "bindingConditions": "DRADeviceBindingConditions",
    "bindingFailureConditions": "DRADeviceBindingConditions",
    "bools": "DRAListTypeAttributes",
    "ints": "DRAListTypeAttributes",
    "strings": "DRAListTypeAttributes",
    "versions": "DRAListTypeAttributes",
}
_LISTS = frozenset({"bools", "ints", "strings", "versions"})


def dropped_fields(sent: Object, stored: Object) -> list[str]:
    """Return the paths in the spec that were sent but not stored, because a feature is off."""
    return sorted(set(_leaves(sent["spec"], "spec")) - set(_leaves(stored["spec"], "spec")))


def feature_gates(fields: Iterable[str]) -> list[str]:
    """Return the feature gates that these fields need."""
    words = {word.partition("[")[0] for field in fields for word in field.split(".")}
    return sorted({_GATES[word] for word in words & _GATES.keys()})


def only_lacks_fields(stored: Object, wanted: Object) -> bool:
    """Return True if the only difference is that the stored slice lacks fields, as after a write with a feature off."""
    has, needs = (dict(_leaves_and_values(comparable(each), "")) for each in (stored, wanted))
    return has != needs and has.items() <= needs.items()


def without_list_attributes(slices: Iterable[Object]) -> list[Object]:
    """Return the slices without list attributes. An API server with that feature off refuses a whole slice because of one of them."""
    return [
        with_devices(each, [_without_lists(device) for device in each["spec"].get("devices") or ()]) for each in slices
    ]


def consumes_counters(slice_: Object) -> bool:
    """Return True if a device of the slice consumes counters."""
    return any(device.get("consumesCounters") for device in slice_["spec"].get("devices") or ())


def without_overlapping_devices(slices: Sequence[Object]) -> list[Object]:
    """Return the slices with only those devices that can all be allocated at the same time; earlier devices take precedence.

    If an API server drops `consumesCounters`, schedulers cannot see that the other devices share hardware with these.
    """
    sets = {
        (pool_name(each), one["name"]): _plain(one["counters"])
        for each in slices for one in each["spec"].get("sharedCounters") or ()
    }  # fmt: skip
    consumed: dict[tuple[str, str], list[CounterConsumption]] = {}

    def kept(slice_: Object) -> list[Object]:
        devices = slice_["spec"].get("devices") or ()
        return [device for device in devices if _consume(pool_name(slice_), device, sets, consumed)]

    return [with_devices(each, kept(each)) for each in slices]


def _consume(
    pool: str,
    device: Object,
    sets: Mapping[tuple[str, str], Quantities],
    consumed: dict[tuple[str, str], list[CounterConsumption]],
) -> bool:
    """Consume the counters that a device needs; return False if they do not suffice."""
    needed = {
        (pool, one["counterSet"]): CounterConsumption(one["counterSet"], _plain(one["counters"]), sets.get((pool, one["counterSet"]), {}))
        for one in device.get("consumesCounters") or ()
    }  # fmt: skip
    if any(exceeds_counters([*consumed.get(key, ()), each]) for key, each in needed.items()):
        return False
    for key, each in needed.items():
        consumed.setdefault(key, []).append(each)
    return True


def _plain(counters: Object) -> Quantities:
    return {name: str(counter["value"]) for name, counter in counters.items()}


def _without_lists(device: Object) -> Object:
    if "attributes" not in device:
        return device
    kept = {name: value for name, value in device["attributes"].items() if not value.keys() & _LISTS}
    return {**device, "attributes": kept}


def _leaves(value: Any, path: str) -> Iterator[str]:
    return (leaf for leaf, _ in _leaves_and_values(value, path))


def _leaves_and_values(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves_and_values(inner, f"{path}.{name}")
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves_and_values(inner, f"{path}[{index}]")
    else:
        yield path, value
