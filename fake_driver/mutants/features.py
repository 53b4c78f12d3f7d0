"""Drivers whose slices do not say what optional parts of DRA need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fake_driver.slices import Object
from fake_driver.wiring import Parts


def taints_missing(right: Parts) -> Parts:
    """Devices that nobody should use look like all others."""
    return _without(right, "taints")


def counters_missing(right: Parts) -> Parts:
    """A device and its parts look as if they had nothing in common."""
    return _without(right, "consumesCounters")


def counters_of_nobody(right: Parts) -> Parts:
    """Devices draw from counters that are nowhere published."""

    def others(device: Object) -> Object:
        draws = [{**draw, "counterSet": "nobodys"} for draw in device.get("consumesCounters", ())]
        return {**device, "consumesCounters": draws} if draws else device

    return _with_devices(right, others)


def sharing_missing(right: Parts) -> Parts:
    """Devices that several claims may have look as if one claim took all of them."""
    return _without(policies_missing(right), "allowMultipleAllocations")


def policies_missing(right: Parts) -> Parts:
    """Nobody says how much of a shared device a claim may have."""

    def plain(device: Object) -> Object:
        amounts = {name: {"value": each["value"]} for name, each in device.get("capacity", {}).items()}
        return {**device, "capacity": amounts} if amounts else device

    return _with_devices(right, plain)


def binding_conditions_missing(right: Parts) -> Parts:
    """Pods start before their devices are attached, because nothing says that they have to wait."""
    return _without(right, "bindingConditions", "bindingFailureConditions")


def _without(right: Parts, *fields: str) -> Parts:
    return _with_devices(right, lambda device: {key: value for key, value in device.items() if key not in fields})


def _with_devices(right: Parts, change: Callable[[Object], Object]) -> Parts:
    """What is published of each device is changed; the device itself stays what it is."""

    def one(slice_: Object) -> Object:
        spec = slice_["spec"]
        return {**slice_, "spec": {**spec, "devices": [change(device) for device in spec["devices"]]}}

    def shaped(wanted: list[Object]) -> list[Object]:
        return [one(each) if each["spec"].get("devices") else each for each in right.shaped(wanted)]

    return replace(right, shaped=shaped)


ALL = (
    taints_missing,
    counters_missing,
    counters_of_nobody,
    sharing_missing,
    policies_missing,
    binding_conditions_missing,
)
