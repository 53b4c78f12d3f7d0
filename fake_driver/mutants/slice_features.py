"""Drivers whose slices lack the fields of optional DRA features, or have wrong ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from fake_driver.mutants.claims import know_devices_by_name
from fake_driver.publishing.slices import Object
from fake_driver.roles.node_driver import Parts


def taints_missing(parts: Parts) -> Parts:
    """Slices have no taints."""
    return _without(parts, "taints")


def counters_missing(parts: Parts) -> Parts:
    """Devices do not consume counters, so a device and its partitions look independent."""
    return _without(parts, "consumesCounters")


def counters_of_nobody(parts: Parts) -> Parts:
    """Devices consume from a counter set that is not published."""

    def with_unknown_set(device: Object) -> Object:
        consumed = [{**each, "counterSet": "nobodys"} for each in device.get("consumesCounters", ())]
        return {**device, "consumesCounters": consumed} if consumed else device

    return _with_devices(parts, with_unknown_set)


def parts_offered_twice(parts: Parts) -> Parts:
    """Devices that consume counters are published again in a second pool with its own counters, so both can be allocated."""

    def alter_slices(wanted: list[Object]) -> list[Object]:
        once = parts.alter_slices(wanted)
        again = [each for each in map(_of_counters, once) if each]
        return [*once, *(_in_pool(f"{each['spec']['pool']['name']}-again", each, len(again)) for each in again)]

    return replace(know_devices_by_name(parts), alter_slices=alter_slices)


def counters_doubled(parts: Parts) -> Parts:
    """Counters are twice what the device has, so a whole device can be allocated beside all its partitions."""

    def one(slice_: Object) -> Object:
        sets = [{**each, "counters": _doubled(each["counters"])} for each in slice_["spec"].get("sharedCounters", ())]
        return {**slice_, "spec": {**slice_["spec"], "sharedCounters": sets}} if sets else slice_

    return replace(parts, alter_slices=lambda wanted: [one(each) for each in parts.alter_slices(wanted)])


def one_ordinary_device_shared(parts: Parts) -> Parts:
    """The first device allows multiple allocations, so two claims can get it."""
    return _with_devices(
        parts, lambda each: {**each, "allowMultipleAllocations": True} if each["name"] == "gpu-0" else each
    )


def one_ordinary_device_tainted(parts: Parts) -> Parts:
    """The first device has a taint, so no claim without a toleration can get it."""
    taint = {"key": "gpu.dra-testbed.example/busy", "effect": "NoSchedule"}
    return _with_devices(parts, lambda each: {**each, "taints": [taint]} if each["name"] == "gpu-0" else each)


def versions_as_strings(parts: Parts) -> Parts:
    """Attributes of type version are published as strings, so selectors cannot compare them as versions."""

    def plain(device: Object) -> Object:
        published = device.get("attributes", {})
        attributes = {
            name: {"string": each["version"]} if "version" in each else each for name, each in published.items()
        }
        return {**device, "attributes": attributes}

    return _with_devices(parts, plain)


def sharing_missing(parts: Parts) -> Parts:
    """Slices do not allow multiple allocations of shared devices."""
    return _without(policies_missing(parts), "allowMultipleAllocations")


def policies_missing(parts: Parts) -> Parts:
    """Slices have no request policies for the capacity of shared devices."""

    def plain(device: Object) -> Object:
        amounts = {name: {"value": each["value"]} for name, each in device.get("capacity", {}).items()}
        return {**device, "capacity": amounts} if amounts else device

    return _with_devices(parts, plain)


def binding_conditions_missing(parts: Parts) -> Parts:
    """Slices have no binding conditions, so pods start before their devices are attached."""
    return _without(parts, "bindingConditions", "bindingFailureConditions")


def _doubled(counters: Object) -> Object:
    """Return counters whose amounts are all twice as large."""
    return {
        name: {"value": re.sub(r"^\d+", lambda found: str(2 * int(found[0])), str(each["value"]))}
        for name, each in counters.items()
    }


def _of_counters(slice_: Object) -> Object | None:
    """Return the slice if it has counters, or with its devices that consume some; None if it has neither."""
    spec = slice_["spec"]
    consuming = [device for device in spec.get("devices", ()) if device.get("consumesCounters")]
    if consuming:
        return {**slice_, "spec": {**spec, "devices": consuming}}
    return slice_ if spec.get("sharedCounters") else None


def _in_pool(pool: str, slice_: Object, count: int) -> Object:
    metadata = {**slice_["metadata"], "name": f"{slice_['metadata']['name']}-again"}
    spec = {**slice_["spec"], "pool": {**slice_["spec"]["pool"], "name": pool, "resourceSliceCount": count}}
    return {**slice_, "metadata": metadata, "spec": spec}


def _without(parts: Parts, *fields: str) -> Parts:
    return _with_devices(parts, lambda device: {key: value for key, value in device.items() if key not in fields})


def _with_devices(parts: Parts, change: Callable[[Object], Object]) -> Parts:
    """Change what is published of each device, but not the devices that the driver prepares."""

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
    counters_doubled,
    one_ordinary_device_shared,
    one_ordinary_device_tainted,
    versions_as_strings,
    sharing_missing,
    policies_missing,
    binding_conditions_missing,
)
