"""The pools and devices of a node, derived from a hardware file. Pure; used by the driver and `python -m fake_driver.hardware`."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from fake_driver.devices.model import (
    Attributes,
    CounterConsumption,
    Device,
    DeviceChange,
    DeviceGroup,
    DeviceNetwork,
    Hardware,
    NetworkTemplate,
    PartitionProfile,
    Pool,
)
from fake_driver.hardware.addresses import AddressPosition, network

# A fixed random namespace, so that other software derives other UUIDs from the same names.
_UUID_NAMESPACE = uuid.UUID("5d9f3f3e-8f0b-4f6c-9a55-3d6a0e1c7b42")
WHOLE = "whole"


def pools(hardware: Hardware, node: str, kinds: Collection[str] = ()) -> tuple[Pool, ...]:
    """Return the node's own pool, which has the node's name, and then the network pools.

    `kinds` selects devices, for several drivers with one hardware file: `gpu`, or `!nic` for all other kinds. Empty selects all.
    """
    network_pools = (
        Pool(pool.name, _devices_in(hardware, pool.groups, pool.name, kinds), node_selector=pool.node_selector)
        for pool in hardware.pools
    )
    return Pool(node, devices(hardware, node, kinds), node), *(pool for pool in network_pools if pool.devices)


def devices(hardware: Hardware, node: str, kinds: Collection[str] = ()) -> tuple[Device, ...]:
    """Return the node's own devices. Each kind is numbered from 0 through all groups. UUIDs are the same at every start."""
    return _devices_in(hardware, hardware.groups, node, kinds)


def apply_changes(before: Iterable[Device], changes: Iterable[DeviceChange], pool: str) -> tuple[Device, ...]:
    """Return the devices of a pool after all changes in order. A change of a whole device also applies to its partitions."""
    return tuple(device for each in before if (device := _apply_to(each, changes, pool)))


@dataclass(frozen=True)
class _Placement:
    """The place of a whole device: its pool, its index in its kind, and its position among all devices of the kind with partitions."""

    pool: str
    index: int
    position: int
    among: int


def _devices_in(
    hardware: Hardware, groups: Sequence[DeviceGroup], pool: str, kinds: Collection[str]
) -> tuple[Device, ...]:
    groups = [group for group in groups if _matches_any(group.nodes, pool)]
    among: Counter[str] = Counter()
    for group in groups:
        among[group.kind] += group.count * group.size
    index, position = Counter[str](), Counter[str]()
    found: list[Device] = []
    for group in groups:
        for row in range(group.count):
            placement = _Placement(pool, index[group.kind], position[group.kind], among[group.kind])
            found += _whole_and_partitions(group, row, placement) if _is_selected(group.kind, kinds) else ()
            index[group.kind] += 1
            position[group.kind] += group.size
    return apply_changes(found, hardware.changes, pool)


def _is_selected(kind: str, kinds: Collection[str]) -> bool:
    wanted = [each for each in kinds if not each.startswith("!")]
    return f"!{kind}" not in kinds and (not wanted or kind in wanted)


def _whole_and_partitions(group: DeviceGroup, row: int, placement: _Placement) -> Iterator[Device]:
    """Return a device and its partitions. All consume from one counter set, and the whole device consumes all of it."""
    whole, partitions = _device(group, row, placement), group.partitions
    if not partitions:
        yield whole
        return
    if partitions.whole:
        everything = CounterConsumption(whole.name, partitions.counters, partitions.counters)
        yield replace(whole, attributes={**whole.attributes, "profile": WHOLE}, consumes_counters=(everything,))
    numbered = ((profile, number) for profile in partitions.profiles for number in range(profile.count))
    for place, (profile, number) in enumerate(numbered):
        name = f"{whole.name}-{profile.name.replace('.', '-')}-{number}"
        interface = _network(group.network, name, placement, place) if group.network else None
        consumed = CounterConsumption(whole.name, profile.takes, partitions.counters)
        yield _partition(whole, profile, name, consumed, interface, placement.pool)


def _device(group: DeviceGroup, row: int, placement: _Placement) -> Device:
    name = f"{group.kind}-{placement.index}"
    interface = _network(group.network, name, placement) if group.network else None
    spread: Attributes = {key: values[row * len(values) // group.count] for key, values in group.spread.items()}
    own = group.per_device[row] if group.per_device else {}
    automatic: Attributes = {"index": placement.index, "uuid": _uuid(placement.pool, name)}
    return Device(
        name,
        group.kind,
        {**automatic, **_network_attributes(interface), **group.attributes, **spread, **own},
        group.capacity,
        group.taints,
        shared=group.shared,
        policies=group.policies,
        binding=group.binding,
        network=interface,
        container_edits=_fill_placeholders(group.container_edits, {"{index}": str(placement.index), "{name}": name}),
    )


def _partition(
    whole: Device,
    profile: PartitionProfile,
    name: str,
    consumed: CounterConsumption,
    interface: DeviceNetwork | None,
    pool: str,
) -> Device:
    own: Attributes = {"uuid": _uuid(pool, name), "profile": profile.name, "parent": whole.name}
    return replace(
        whole,
        name=name,
        attributes={**whole.attributes, **own, **_network_attributes(interface), **profile.attributes},
        capacity=profile.capacity,
        consumes_counters=(consumed,),
        policies={},
        shared=False,
        network=interface,
        parent=whole.name,
    )


def _network(template: NetworkTemplate, name: str, placement: _Placement, place: int | None = None) -> DeviceNetwork:
    """Return the network of a device, or of its partition at this place."""
    interface, position = f"{template.interface}{placement.index}", placement.position
    if place is not None:
        interface, position = f"{interface}v{place}", position + 1 + place
    address = AddressPosition(placement.pool, position, placement.among)
    return network(template.ranges, interface, f"{placement.pool}/{name}", address)


def _network_attributes(interface: DeviceNetwork | None) -> Attributes:
    return {"interface": interface.interface, "hardwareAddress": interface.hardware_address} if interface else {}


def _apply_to(device: Device, changes: Iterable[DeviceChange], pool: str) -> Device | None:
    for change in changes:
        is_meant = _matches_any(change.devices, device.name) or _matches_any(change.devices, device.parent)
        if not (_matches_any(change.nodes, pool) and is_meant):
            continue
        if change.absent:
            return None
        device = replace(
            device,
            attributes={**device.attributes, **change.attributes},
            capacity={**device.capacity, **({} if device.parent else change.capacity)},
            taints=(*device.taints, *change.taints),
        )
    return device


def _fill_placeholders(content: Any, values: Mapping[str, str]) -> Any:
    """Return the content with the placeholders in all strings replaced."""
    if isinstance(content, str):
        for placeholder, value in values.items():
            content = content.replace(placeholder, value)
        return content
    if isinstance(content, Mapping):
        return {key: _fill_placeholders(inner, values) for key, inner in content.items()}
    return [_fill_placeholders(inner, values) for inner in content] if isinstance(content, list) else content


def _matches_any(patterns: Iterable[str], name: str) -> bool:
    return bool(name) and any(fnmatchcase(name, pattern) for pattern in patterns)


def _uuid(pool: str, name: str) -> str:
    return str(uuid.uuid5(_UUID_NAMESPACE, f"{pool}/{name}"))
