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

# Which feature gate of the API server keeps a field; without it the field is dropped without a word.
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
    """Paths of what we sent in the spec and the API server did not keep, because a feature is off."""
    return sorted(set(_leaves(sent["spec"], "spec")) - set(_leaves(stored["spec"], "spec")))


def feature_gates(fields: Iterable[str]) -> list[str]:
    """The feature gates that would keep these fields."""
    words = {word.partition("[")[0] for field in fields for word in field.split(".")}
    return sorted({_GATES[word] for word in words & _GATES.keys()})


def only_lacks_fields(stored: Object, wanted: Object) -> bool:
    """Whether what is stored is what we want without some fields, as an API server with a feature off leaves it."""
    has, wants = (dict(_leaves_and_values(comparable(each), "")) for each in (stored, wanted))
    return has != wants and has.items() <= wants.items()


def without_list_attributes(slices: Iterable[Object]) -> list[Object]:
    """The slices without attributes that are lists: an API server that has that feature off refuses the whole slice for one of them."""
    return [
        with_devices(each, [_without_lists(device) for device in each["spec"].get("devices") or ()]) for each in slices
    ]


def consumes_counters(slice_: Object) -> bool:
    """Whether a device in it draws from counters."""
    return any(device.get("consumesCounters") for device in slice_["spec"].get("devices") or ())


def without_overlapping_devices(slices: Sequence[Object]) -> list[Object]:
    """The slices with only those devices that can all be used at the same time, the first ones first: wholes, and not their parts.

    An API server that drops what devices draw from counters would hide from schedulers that the others are the same hardware.
    """
    sets = {
        (pool_name(each), one["name"]): _plain(one["counters"])
        for each in slices for one in each["spec"].get("sharedCounters") or ()
    }  # fmt: skip
    taken: dict[tuple[str, str], list[CounterConsumption]] = {}
    return [
        with_devices(
            each, [one for one in each["spec"].get("devices") or () if _fits(pool_name(each), one, sets, taken)]
        )
        for each in slices
    ]


def _fits(
    pool: str,
    device: Object,
    sets: Mapping[tuple[str, str], Quantities],
    taken: dict[tuple[str, str], list[CounterConsumption]],
) -> bool:
    """Whether there is still enough for a device; if so, it is taken."""
    wanted = {
        (pool, one["counterSet"]): CounterConsumption(one["counterSet"], _plain(one["counters"]), sets.get((pool, one["counterSet"]), {}))
        for one in device.get("consumesCounters") or ()
    }  # fmt: skip
    if any(exceeds_counters([*taken.get(where, ()), draw]) for where, draw in wanted.items()):
        return False
    for where, draw in wanted.items():
        taken.setdefault(where, []).append(draw)
    return True


def _plain(counters: Object) -> Quantities:
    return {name: str(counter["value"]) for name, counter in counters.items()}


def _without_lists(device: Object) -> Object:
    if "attributes" not in device:
        return device
    kept = {name: value for name, value in device["attributes"].items() if not value.keys() & _LISTS}
    return {**device, "attributes": kept}


def _leaves(value: Any, path: str) -> Iterator[str]:
    return (where for where, _ in _leaves_and_values(value, path))


def _leaves_and_values(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves_and_values(inner, f"{path}.{name}")
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves_and_values(inner, f"{path}[{index}]")
    else:
        yield path, value
