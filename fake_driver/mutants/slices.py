"""Drivers whose slices say something else than what there is, or do not follow it."""

from __future__ import annotations

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
    """The driver works, but no scheduler can know what it has."""
    return replace(parts, publishes=False)


def count_one_slice_too_many(parts: Parts) -> Parts:
    """Each pool announces a slice that is never published, so no scheduler takes it for whole."""
    return replace(parts, alter_slices=lambda wanted: [_counted(each, len(wanted) + 1) for each in wanted])


def slices_count_differently(parts: Parts) -> Parts:
    """Each slice of a pool says another number of them; the first is right, so schedulers take the pool for whole."""

    def counted(wanted: list[Object]) -> list[Object]:
        return [_counted(each, len(wanted) + index) for index, each in enumerate(wanted)]

    return replace(parts, alter_slices=counted)


def slices_without_owner(parts: Parts) -> Parts:
    """Slices belong to nobody, and stay when their node goes."""
    return replace(parts, alter_slices=lambda wanted: [_ownerless(each) for each in wanted])


def publish_devices_twice(parts: Parts) -> Parts:
    """A second slice of the pool holds the same devices once more."""

    def twice(wanted: list[Object]) -> list[Object]:
        copies = [
            {**each, "metadata": {**each["metadata"], "name": f"{each['metadata']['name']}-2"}} for each in wanted
        ]
        return [_counted(each, 2 * len(wanted)) for each in (*wanted, *copies)]

    return replace(parts, alter_slices=twice)


def publish_attributes_of_another_device(parts: Parts) -> Parts:
    """In the slices each device bears the attributes of its neighbour."""

    def shifted(wanted: list[Object]) -> list[Object]:
        return [{**each, "spec": {**each["spec"], **_shifted(each["spec"])}} for each in wanted]

    return replace(parts, alter_slices=shifted)


def publish_once(parts: Parts) -> Parts:
    """What changes after the first slices never reaches the API."""
    first: list[Sequence[Device]] = []

    def published_devices(inventory: Inventory) -> Sequence[Device]:
        first.append(parts.published_devices(inventory))
        return first[0]

    return replace(parts, published_devices=published_devices)


def unplugged_devices_stay_published(parts: Parts) -> Parts:
    """Devices that are gone are still offered to schedulers."""
    file = parts.inventory.devices

    def published_devices(inventory: Inventory) -> Sequence[Device]:
        there = {device.name: device for device in parts.published_devices(inventory)}
        return [there.get(device.name, device) for device in file]

    return replace(parts, published_devices=published_devices)


def taints_are_not_published(parts: Parts) -> Parts:
    """Nobody learns that a device shall not be used."""
    return replace(
        parts,
        published_devices=lambda inventory: [
            replace(device, taints=()) for device in parts.published_devices(inventory)
        ],
    )


def publish_with_wrong_generation(parts: Parts) -> Parts:
    """A pool of several slices keeps its generation when they change, so schedulers take it for whole while it is half written."""

    def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
        found = parts.plan(wanted, existing, accepted)
        kept = (tuple(with_generation(each, 1) for each in writes) for writes in (found.replace, found.create))
        return Plan(found.delete, *kept)

    return replace(parts, plan=plan, alter_slices=_one_slice_per_device)


def publish_a_generation_too_low(parts: Parts) -> Parts:
    """A pool that has changed is published under the generation that it had before."""
    return replace(parts, publisher=_SameGeneration)


def never_heal_slices(parts: Parts) -> Parts:
    """What others delete or change after the first write stays deleted or changed."""
    return replace(parts, publisher=_Blind)


def deleted_slices_stay_away(parts: Parts) -> Parts:
    """Once the slices are written, nobody looks after them."""
    done: list[bool] = []

    def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
        found = Plan() if done else parts.plan(wanted, existing, accepted)
        if not found:
            done.append(True)
        return found

    return replace(parts, plan=plan)


def publishes_from_scratch(parts: Parts) -> Parts:
    """A new process deletes the slices of the one before it, and makes the same again."""
    first: list[set[str]] = []

    def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
        there = list(existing)
        if not first:
            first.append({each["metadata"]["uid"] for each in there})
        old = tuple(each for each in there if each["metadata"]["uid"] in first[0])
        found = parts.plan(wanted, [each for each in there if each not in old], accepted)
        return replace(found, delete=(*old, *found.delete))

    return replace(parts, plan=plan)


def publishes_nothing_at_first(parts: Parts) -> Parts:
    """A new process empties the slices of the one before it, and fills them again a moment later."""
    return replace(parts, publisher=_EmptyAtFirst)


def publishes_only_the_first_time(parts: Parts) -> Parts:
    """A file in the data folder says that the slices are written, and a new process believes it."""
    written = parts.data / "slices-are-written"
    believed = written.exists()

    def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
        found = Plan() if believed else parts.plan(wanted, existing, accepted)
        if not found:
            written.touch()
        return found

    return replace(parts, plan=plan)


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
    said = {key: value for key, value in slice_["metadata"].items() if key != "ownerReferences"}
    return {**slice_, "metadata": said}


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


class _Blind(Publisher):
    def _handle(self, news: Any) -> None:
        if not (self.published.is_set() and isinstance(news, SliceEvent | SliceList)):
            super()._handle(news)


def _shifted(spec: Object) -> Object:
    devices = spec.get("devices", [])
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
)
