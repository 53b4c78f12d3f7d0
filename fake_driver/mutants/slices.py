"""Drivers whose slices do not match the hardware, or do not follow its changes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fake_driver.devices.model import Device
from fake_driver.preparing.inventory import Inventory
from fake_driver.publishing.planner import Plan, with_generation
from fake_driver.publishing.publisher import Publisher
from fake_driver.publishing.slice_watch import SliceEvent, SliceList
from fake_driver.publishing.slices import Object
from fake_driver.roles.node_driver import Parts


def slices_missing(parts: Parts) -> Parts:
    """The driver publishes no slices."""
    return replace(parts, publishes=False)


def count_one_slice_too_many(parts: Parts) -> Parts:
    """The slice count of each pool is one too high, so the scheduler treats the pool as incomplete."""
    return replace(parts, alter_slices=lambda wanted: [_counted(each, len(wanted) + 1) for each in wanted])


def slices_count_differently(parts: Parts) -> Parts:
    """The slices of a pool have different slice counts; only the first is correct."""

    def counted(wanted: list[Object]) -> list[Object]:
        return [_counted(each, len(wanted) + index) for index, each in enumerate(wanted)]

    return replace(parts, alter_slices=counted)


def slices_without_owner(parts: Parts) -> Parts:
    """Slices have no owner, so they stay when their node is deleted."""
    return replace(parts, alter_slices=lambda wanted: [_ownerless(each) for each in wanted])


def publish_devices_twice(parts: Parts) -> Parts:
    """A second slice of the pool has the same devices again."""

    def twice(wanted: list[Object]) -> list[Object]:
        copies = [
            {**each, "metadata": {**each["metadata"], "name": f"{each['metadata']['name']}-2"}} for each in wanted
        ]
        return [_counted(each, 2 * len(wanted)) for each in (*wanted, *copies)]

    return replace(parts, alter_slices=twice)


def publish_attributes_of_another_device(parts: Parts) -> Parts:
    """Each device is published with the attributes of another device."""

    def shifted(wanted: list[Object]) -> list[Object]:
        return [{**each, "spec": {**each["spec"], **_shifted(each["spec"])}} for each in wanted]

    return replace(parts, alter_slices=shifted)


def publish_once(parts: Parts) -> Parts:
    """Changes of the hardware after the first publication are not published."""
    first: list[Sequence[Device]] = []

    def published_devices(inventory: Inventory) -> Sequence[Device]:
        first.append(parts.published_devices(inventory))
        return first[0]

    return replace(parts, published_devices=published_devices)


def unplugged_devices_stay_published(parts: Parts) -> Parts:
    """Unplugged devices are still published."""
    at_start = parts.inventory.devices

    def published_devices(inventory: Inventory) -> Sequence[Device]:
        present = {device.name: device for device in parts.published_devices(inventory)}
        return [present.get(device.name, device) for device in at_start]

    return replace(parts, published_devices=published_devices)


def taints_are_not_published(parts: Parts) -> Parts:
    """Devices are published without their taints."""
    return replace(
        parts,
        published_devices=lambda inventory: [
            replace(device, taints=()) for device in parts.published_devices(inventory)
        ],
    )


def publish_with_wrong_generation(parts: Parts) -> Parts:
    """The generation of a pool with several slices never changes, so the scheduler treats a half-written pool as complete."""

    def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
        found = parts.plan(wanted, existing, accepted)
        kept = (tuple(with_generation(each, 1) for each in writes) for writes in (found.replace, found.create))
        return Plan(found.delete, *kept)

    return replace(parts, plan=plan, alter_slices=_one_slice_per_device)


def publish_a_generation_too_low(parts: Parts) -> Parts:
    """A changed pool is published with its old generation."""
    return replace(parts, publisher=_SameGeneration)


def never_heal_slices(parts: Parts) -> Parts:
    """Slices that others delete or change are not restored."""
    return replace(parts, publisher=_IgnoreChanges)


def deleted_slices_stay_away(parts: Parts) -> Parts:
    """Slices are written once and never again, even if they are deleted."""
    done: list[bool] = []

    def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
        found = Plan() if done else parts.plan(wanted, existing, accepted)
        if not found:
            done.append(True)
        return found

    return replace(parts, plan=plan)


def publishes_from_scratch(parts: Parts) -> Parts:
    """A restarted driver deletes the existing slices and creates the same slices again."""
    first: list[set[str]] = []

    def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
        present = list(existing)
        if not first:
            first.append({each["metadata"]["uid"] for each in present})
        old = tuple(each for each in present if each["metadata"]["uid"] in first[0])
        found = parts.plan(wanted, [each for each in present if each not in old], accepted)
        return replace(found, delete=(*old, *found.delete))

    return replace(parts, plan=plan)


def publishes_nothing_at_first(parts: Parts) -> Parts:
    """A restarted driver first publishes its slices without devices, and the devices a moment later."""
    return replace(parts, publisher=_EmptyAtFirst)


def publishes_only_the_first_time(parts: Parts) -> Parts:
    """A restarted driver does not check its slices, because a file in the data folder says that they are written."""
    written = parts.data / "slices-are-written"
    is_written = written.exists()

    def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
        found = Plan() if is_written else parts.plan(wanted, existing, accepted)
        if not found:
            written.touch()
        return found

    return replace(parts, plan=plan)


def deletes_slices_after_a_restart(parts: Parts) -> Parts:
    """A restarted driver deletes the slices of the process before it, and publishes none."""
    written = parts.data / "slices-were-written"
    is_restarted = written.exists()

    def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
        found = Plan(tuple(existing)) if is_restarted else parts.plan(wanted, existing, accepted)
        if not found:
            written.touch()
        return found

    return replace(parts, plan=plan)


def publishes_in_another_order(parts: Parts) -> Parts:
    """Each start of the driver publishes the same devices in another order."""

    @functools.cache
    def starts() -> int:
        counted = parts.data / "starts"
        number = int(counted.read_text()) + 1 if counted.exists() else 0
        counted.write_text(str(number))
        return number

    def rotated(slice_: Object) -> Object:
        devices = slice_["spec"].get("devices") or []
        first = starts() % max(1, len(devices))
        return (
            {**slice_, "spec": {**slice_["spec"], "devices": [*devices[first:], *devices[:first]]}} if first else slice_
        )

    return replace(parts, alter_slices=lambda wanted: [rotated(each) for each in parts.alter_slices(wanted)])


def _one_slice_per_device(wanted: list[Object]) -> list[Object]:
    single = [
        {
            **each,
            "metadata": {**each["metadata"], "name": f"{index:05x}-{each['metadata']['name']}"},
            "spec": {**each["spec"], "devices": [device]},
        }
        for each in wanted
        for index, device in enumerate(each["spec"].get("devices") or ())
    ]
    return [
        {**each, "spec": {**each["spec"], "pool": {**each["spec"]["pool"], "resourceSliceCount": len(single)}}}
        for each in single
    ]


def _emptied(slice_: Object) -> Object:
    return {**slice_, "spec": {**slice_["spec"], "devices": []}} if slice_["spec"].get("devices") else slice_


def _ownerless(slice_: Object) -> Object:
    metadata = {key: value for key, value in slice_["metadata"].items() if key != "ownerReferences"}
    return {**slice_, "metadata": metadata}


def _counted(slice_: Object, count: int) -> Object:
    spec = slice_["spec"]
    return {**slice_, "spec": {**spec, "pool": {**spec["pool"], "resourceSliceCount": count}}}


class _SameGeneration(Publisher):
    def _from_v1(self, slice_: Object) -> Object:
        pool = {**slice_["spec"]["pool"], "generation": 1}
        return super()._from_v1({**slice_, "spec": {**slice_["spec"], "pool": pool}})


class _EmptyAtFirst(Publisher):
    def _wanted(self) -> list[Object]:
        wanted = super()._wanted()
        return wanted if self.published.is_set() else [_emptied(each) for each in wanted]

    def _reconcile(self) -> None:
        super()._reconcile()
        super()._reconcile()


class _IgnoreChanges(Publisher):
    def _handle(self, event: Any) -> None:
        if not (self.published.is_set() and isinstance(event, SliceEvent | SliceList)):
            super()._handle(event)


def _shifted(spec: Object) -> Object:
    devices = spec.get("devices")
    if not devices:  # a slice with shared counters has no devices
        return {}
    rotated = [*devices[1:], *devices[:1]]
    return {
        "devices": [{**one, "attributes": other["attributes"]} for one, other in zip(devices, rotated, strict=True)]
    }


ALL = (
    slices_missing,
    count_one_slice_too_many,
    slices_count_differently,
    slices_without_owner,
    publish_devices_twice,
    publish_attributes_of_another_device,
    publish_once,
    unplugged_devices_stay_published,
    taints_are_not_published,
    publish_with_wrong_generation,
    publish_a_generation_too_low,
    never_heal_slices,
    deleted_slices_stay_away,
    publishes_from_scratch,
    publishes_nothing_at_first,
    publishes_only_the_first_time,
    deletes_slices_after_a_restart,
    publishes_in_another_order,
)
