"""The pure function from a description to the pools and devices that one node has or can reach."""

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

# Any fixed number would do; it keeps our identities apart from those of others who hash the same names.
_UUID_NAMESPACE = uuid.UUID("5d9f3f3e-8f0b-4f6c-9a55-3d6a0e1c7b42")
WHOLE = "whole"


def pools(hardware: Hardware, node: str, kinds: Collection[str] = ()) -> tuple[Pool, ...]:
    """The node's own pool, which is named like it, and after it those of the network.

    `kinds` are those of one driver, where several share a server: `gpu`, or `!nic` for all but that one. None means all.
    """
    of_network = (
        Pool(pool.name, _devices_in(hardware, pool.groups, pool.name, kinds), node_selector=pool.node_selector)
        for pool in hardware.pools
    )
    return Pool(node, devices(hardware, node, kinds), node), *(pool for pool in of_network if pool.devices)


def devices(hardware: Hardware, node: str, kinds: Collection[str] = ()) -> tuple[Device, ...]:
    """The node's own devices. Each kind counts from 0 through all groups; a device's uuid is the same at every start."""
    return _devices_in(hardware, hardware.groups, node, kinds)


def apply_changes(found: Iterable[Device], changes: Iterable[DeviceChange], pool: str) -> tuple[Device, ...]:
    """The devices after all changes that are about them, one after the other. What happens to a whole happens to its parts."""
    return tuple(device for each in found if (device := _apply_to(each, changes, pool)))


@dataclass(frozen=True)
class _Placement:
    """Where a device is: its pool, its number among the wholes of its kind, and its position among all of them and their parts."""

    pool: str
    index: int
    position: int
    among: int


def _devices_in(
    hardware: Hardware, groups: Sequence[DeviceGroup], pool: str, kinds: Collection[str]
) -> tuple[Device, ...]:
    there = [group for group in groups if _matches_any(group.nodes, pool)]
    among: Counter[str] = Counter()
    for group in there:
        among[group.kind] += group.count * group.size
    index, position = Counter[str](), Counter[str]()
    found: list[Device] = []
    for group in there:
        for row in range(group.count):
            placement = _Placement(pool, index[group.kind], position[group.kind], among[group.kind])
            found += _whole_and_partitions(group, row, placement) if _is_of(group.kind, kinds) else ()
            index[group.kind] += 1
            position[group.kind] += group.size
    return apply_changes(found, hardware.changes, pool)


def _is_of(kind: str, kinds: Collection[str]) -> bool:
    wanted = [word for word in kinds if not word.startswith("!")]
    return f"!{kind}" not in kinds and (not wanted or kind in wanted)


def _whole_and_partitions(group: DeviceGroup, row: int, placement: _Placement) -> Iterator[Device]:
    """A device, and after it its parts. All of them draw from one set of counters, so the whole excludes the parts."""
    whole, cut = _device(group, row, placement), group.partitions
    if not cut:
        yield whole
        return
    if cut.whole:
        marked = {**whole.attributes, "profile": WHOLE}
        yield replace(
            whole, attributes=marked, consumes_counters=(CounterConsumption(whole.name, cut.counters, cut.counters),)
        )
    numbered = ((profile, number) for profile in cut.profiles for number in range(profile.count))
    for place, (profile, number) in enumerate(numbered):
        name = f"{whole.name}-{profile.name.replace('.', '-')}-{number}"
        network_ = _network(group.network, name, placement, place) if group.network else None
        draw = CounterConsumption(whole.name, profile.takes, cut.counters)
        yield _partition(whole, profile, name, draw, network_, placement.pool)


def _device(group: DeviceGroup, row: int, placement: _Placement) -> Device:
    name = f"{group.kind}-{placement.index}"
    network_ = _network(group.network, name, placement) if group.network else None
    spread: Attributes = {key: values[row * len(values) // group.count] for key, values in group.spread.items()}
    own = group.per_device[row] if group.per_device else {}
    automatic: Attributes = {"index": placement.index, "uuid": _uuid(placement.pool, name)}
    return Device(
        name, group.kind, {**automatic, **_network_attributes(network_), **group.attributes, **spread, **own}, group.capacity,
        group.taints, shared=group.shared, policies=group.policies, binding=group.binding, network=network_,
        container_edits=_fill_placeholders(group.container_edits, {"{index}": str(placement.index), "{name}": name}),
    )  # fmt: skip


def _partition(
    whole: Device,
    profile: PartitionProfile,
    name: str,
    draw: CounterConsumption,
    network_: DeviceNetwork | None,
    pool: str,
) -> Device:
    own: Attributes = {"uuid": _uuid(pool, name), "profile": profile.name, "parent": whole.name}
    return replace(
        whole,
        name=name,
        attributes={**whole.attributes, **own, **_network_attributes(network_), **profile.attributes},
        capacity=profile.capacity,
        consumes_counters=(draw,),
        policies={},
        shared=False,
        network=network_,
        parent=whole.name,
    )


def _network(plan: NetworkTemplate, name: str, placement: _Placement, place: int | None = None) -> DeviceNetwork:
    """The whole comes first, its parts follow."""
    interface, position = f"{plan.interface}{placement.index}", placement.position
    if place is not None:
        interface, position = f"{interface}v{place}", position + 1 + place
    return network(
        plan.ranges, interface, f"{placement.pool}/{name}", AddressPosition(placement.pool, position, placement.among)
    )


def _network_attributes(network_: DeviceNetwork | None) -> Attributes:
    return {"interface": network_.interface, "hardwareAddress": network_.hardware_address} if network_ else {}


def _apply_to(device: Device, changes: Iterable[DeviceChange], pool: str) -> Device | None:
    for change in changes:
        if not (
            _matches_any(change.nodes, pool)
            and (_matches_any(change.devices, device.name) or _matches_any(change.devices, device.parent))
        ):
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


def _fill_placeholders(content: Any, words: Mapping[str, str]) -> Any:
    """The same with the device's own words in all texts."""
    if isinstance(content, str):
        for mark, word in words.items():
            content = content.replace(mark, word)
        return content
    if isinstance(content, Mapping):
        return {key: _fill_placeholders(value, words) for key, value in content.items()}
    return [_fill_placeholders(value, words) for value in content] if isinstance(content, list) else content


def _matches_any(patterns: Iterable[str], name: str) -> bool:
    return bool(name) and any(fnmatchcase(name, pattern) for pattern in patterns)


def _uuid(pool: str, name: str) -> str:
    return str(uuid.uuid5(_UUID_NAMESPACE, f"{pool}/{name}"))
