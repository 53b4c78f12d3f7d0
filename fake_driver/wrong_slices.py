"""Drivers whose slices do not follow what happens to their hardware, each in one way. `faults` knows them by their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from fake_driver.hardware.model import Device
from fake_driver.inventory import Inventory
from fake_driver.planning import Plan, at_generation
from fake_driver.slices import Object
from fake_driver.wiring import Parts


def publish_once(right: Parts) -> Parts:
    """What changes after the first slices never reaches the API."""
    first: list[Sequence[Device]] = []

    def published(inventory: Inventory) -> Sequence[Device]:
        first.append(right.published(inventory))
        return first[0]

    return replace(right, published=published)


def unplugged_devices_stay_published(right: Parts) -> Parts:
    """Devices that are gone are still offered to schedulers."""
    file = right.inventory.devices

    def published(inventory: Inventory) -> Sequence[Device]:
        there = {device.name: device for device in right.published(inventory)}
        return [there.get(device.name, device) for device in file]

    return replace(right, published=published)


def taints_are_not_published(right: Parts) -> Parts:
    """Nobody learns that a device shall not be used."""
    return replace(
        right, published=lambda inventory: [replace(device, taints=()) for device in right.published(inventory)]
    )


def publish_with_wrong_generation(right: Parts) -> Parts:
    """A pool of several slices keeps its generation when they change, so schedulers take it for whole while it is half written."""

    def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
        found = right.plan(wanted, existing, accepted)
        kept = (tuple(at_generation(each, 1) for each in writes) for writes in (found.replace, found.create))
        return Plan(found.delete, *kept)

    return replace(right, plan=plan, shaped=_one_slice_per_device)


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
