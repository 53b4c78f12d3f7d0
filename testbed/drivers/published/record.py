"""Remembers what ResourceSlices said about devices: a driver may remove a device from them while a claim uses it. For the vocabulary.

A container is compared with the devices that were allocated to its claims, as they were published then, and not with today's slices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from testbed.drivers.published.placement import named_nodes, place_of
from testbed.drivers.published.slices import Device, pools
from testbed.kube.client import Object


@dataclass(frozen=True)
class PublishedDevice:
    """A device as a ResourceSlice described it. `spec` is that of the slice, without the other devices."""

    device: Device
    description: Object
    spec: Object

    @property
    def nodes(self) -> frozenset[str]:
        """Return the nodes that the device or its slice names; none if it is network-attached."""
        return named_nodes(self.spec, self.description)

    @property
    def node(self) -> str:
        """Return the only node that can use the device, or ''."""
        return min(self.nodes) if len(self.nodes) == 1 else ""

    @property
    def is_everywhere(self) -> bool:
        """Return True if all nodes can use the device."""
        return bool(place_of(self.spec, self.description).get("allNodes"))

    def is_usable_on(self, node: str) -> bool:
        """Return False if the device belongs to other nodes. A node selector that names no node is not evaluated."""
        return not self.nodes or node in self.nodes


@dataclass(frozen=True)
class Allocation:
    """The devices of a claim, as they were published when the allocation was first seen."""

    uid: str
    devices: dict[Device, PublishedDevice]


@dataclass(frozen=True)
class SliceRecord:
    """The newest description of each device that was ever published, and of each allocated device the one from then."""

    newest: dict[Device, PublishedDevice] = field(default_factory=dict)
    allocations: dict[tuple[str, str], Allocation] = field(default_factory=dict)

    def observe(self, slices: Iterable[Object]) -> None:
        """Remember the devices in these slices."""
        self.newest.update((each.device, each) for each in described(slices))

    def remember_allocation(self, claim: Object) -> None:
        """Remember the devices of a claim as they are published now, unless this allocation is known."""
        metadata = claim["metadata"]
        key, uid = (metadata.get("namespace", ""), metadata["name"]), str(metadata.get("uid", ""))
        known = self.allocations.get(key)
        before = known.devices if known and known.uid == uid else {}
        devices = {each: before.get(each) or self.newest.get(each) for each in devices_in(claim)}
        if devices:
            self.allocations[key] = Allocation(uid, {device: each for device, each in devices.items() if each})

    def allocated_to(self, namespace: str, claim: str) -> tuple[PublishedDevice, ...]:
        """Return the devices of a claim as they were published when its allocation was first seen, also after its deletion."""
        found = self.allocations.get((namespace, claim))
        return tuple(found.devices.values()) if found else ()

    def absent_from(self, slices: Iterable[Object], driver: str) -> frozenset[Device]:
        """Return the devices of a driver that were published once, and are not in these slices."""
        present = {each.device for each in described(slices)}
        return frozenset(each for each in self.newest if each.driver == driver and each not in present)

    def forget(self, devices: Iterable[Device]) -> None:
        """Forget devices that do not come back. Allocations keep them."""
        for each in devices:
            self.newest.pop(each, None)

    def added_to(self, slices: Iterable[Object], absent: Iterable[Device]) -> list[Object]:
        """Return the slices as if they still had these devices."""
        found = list(slices)
        for each in (self.newest[device] for device in sorted(absent)):
            places = [index for index, one in enumerate(found) if _has_place_for(one, each)]
            if places:
                index = max(places, key=lambda place: int(found[place]["spec"]["pool"]["generation"]))
                found[index] = _with_device(found[index], each.description)
            else:
                found.append(
                    _with_device({"metadata": {"name": f"recorded-{each.device}"}, "spec": each.spec}, each.description)
                )
        return found


def described(slices: Iterable[Object]) -> Iterator[PublishedDevice]:
    """Yield the devices of the newest generation of each pool."""
    every = list(slices)
    for driver in sorted({str(each["spec"]["driver"]) for each in every}):
        for pool in pools(every, driver):
            for spec in (each["spec"] for each in pool.slices):
                for device in spec.get("devices") or ():
                    yield PublishedDevice(Device(driver, pool.name, device["name"]), device, {**spec, "devices": []})


def devices_in(claim: Object) -> frozenset[Device]:
    """Return the devices that are allocated to a claim, with admin access too."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = allocation.get("devices", {}).get("results") or ()
    return frozenset(Device(each["driver"], each["pool"], each["device"]) for each in results)


def _has_place_for(slice_: Object, device: PublishedDevice) -> bool:
    spec = slice_["spec"]
    same = all(spec.get(key) == device.spec.get(key) for key in ("driver", "nodeName"))
    return bool(same and spec["pool"]["name"] == device.device.pool)


def _with_device(slice_: Object, description: Object) -> Object:
    devices = [*(slice_["spec"].get("devices") or ()), description]
    return {**slice_, "spec": {**slice_["spec"], "devices": devices}}
