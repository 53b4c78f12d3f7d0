"""Drivers whose slices do not say what optional parts of DRA need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fake_driver.mutants.claims import know_devices_by_name
from fake_driver.publishing.slices import Object
from fake_driver.roles.node_driver import Parts


def taints_missing(parts: Parts) -> Parts:
    """Devices that nobody should use look like all others."""
    return _without(parts, "taints")


def counters_missing(parts: Parts) -> Parts:
    """A device and its parts look as if they had nothing in common."""
    return _without(parts, "consumesCounters")


def counters_of_nobody(parts: Parts) -> Parts:
    """Devices draw from counters that are nowhere published."""

    def others(device: Object) -> Object:
        draws = [{**draw, "counterSet": "nobodys"} for draw in device.get("consumesCounters", ())]
        return {**device, "consumesCounters": draws} if draws else device

    return _with_devices(parts, others)


def parts_offered_twice(parts: Parts) -> Parts:
    """What draws from counters is offered once more in a second pool, with counters of its own; nobody adds up what is had of both."""

    def alter_slices(wanted: list[Object]) -> list[Object]:
        once = parts.alter_slices(wanted)
        again = [each for each in map(_of_counters, once) if each]
        return [*once, *(_in_pool(f"{each['spec']['pool']['name']}-again", each, len(again)) for each in again)]

    return replace(know_devices_by_name(parts), alter_slices=alter_slices)


def sharing_missing(parts: Parts) -> Parts:
    """Devices that several claims may have look as if one claim took all of them."""
    return _without(policies_missing(parts), "allowMultipleAllocations")


def policies_missing(parts: Parts) -> Parts:
    """Nobody says how much of a shared device a claim may have."""

    def plain(device: Object) -> Object:
        amounts = {name: {"value": each["value"]} for name, each in device.get("capacity", {}).items()}
        return {**device, "capacity": amounts} if amounts else device

    return _with_devices(parts, plain)


def binding_conditions_missing(parts: Parts) -> Parts:
    """Pods start before their devices are attached, because nothing says that they have to wait."""
    return _without(parts, "bindingConditions", "bindingFailureConditions")


def _of_counters(slice_: Object) -> Object | None:
    """A slice with its counters, or with what draws from some; nothing where it has neither."""
    spec = slice_["spec"]
    drawing = [device for device in spec.get("devices", ()) if device.get("consumesCounters")]
    if drawing:
        return {**slice_, "spec": {**spec, "devices": drawing}}
    return slice_ if spec.get("sharedCounters") else None


def _in_pool(pool: str, slice_: Object, count: int) -> Object:
    metadata = {**slice_["metadata"], "name": f"{slice_['metadata']['name']}-again"}
    spec = {**slice_["spec"], "pool": {**slice_["spec"]["pool"], "name": pool, "resourceSliceCount": count}}
    return {**slice_, "metadata": metadata, "spec": spec}


def _without(parts: Parts, *fields: str) -> Parts:
    return _with_devices(parts, lambda device: {key: value for key, value in device.items() if key not in fields})


def _with_devices(parts: Parts, change: Callable[[Object], Object]) -> Parts:
    """What is published of each device is changed; the device itself stays what it is."""

    def one(slice_: Object) -> Object:
        spec = slice_["spec"]
        return {**slice_, "spec": {**spec, "devices": [change(device) for device in spec["devices"]]}}

    def alter_slices(wanted: list[Object]) -> list[Object]:
        return [one(each) if each["spec"].get("devices") else each for each in parts.alter_slices(wanted)]

    return replace(parts, alter_slices=alter_slices)


ALL = (
    taints_missing,
    counters_missing,
    counters_of_nobody,
    parts_offered_twice,
    sharing_missing,
    policies_missing,
    binding_conditions_missing,
)
