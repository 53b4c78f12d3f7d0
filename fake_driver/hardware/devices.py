"""The pure function from a description to the devices of one node."""

from __future__ import annotations

import uuid
from collections import defaultdict

from fake_driver.hardware.model import Device, Group, Hardware, Row

# Any fixed number would do; it keeps our identities apart from those of others who hash the same names.
_IDENTITIES = uuid.UUID("5d9f3f3e-8f0b-4f6c-9a55-3d6a0e1c7b42")


def devices(hardware: Hardware, node: str) -> tuple[Device, ...]:
    """The node's devices. Each kind counts from 0 through all groups; identities are the same at every start and differ between nodes."""
    counted: dict[str, int] = defaultdict(int)
    found: list[Device] = []
    for group in hardware.groups:
        first = counted[group.kind]
        found += (_device(group, row, first + row, node) for row in range(group.count))
        counted[group.kind] += group.count
    return tuple(found)


def _device(group: Group, row: int, index: int, node: str) -> Device:
    name = f"{group.kind}-{index}"
    automatic: Row = {"index": index, "uuid": str(uuid.uuid5(_IDENTITIES, f"{node}/{name}"))}
    own = group.per_device[row] if group.per_device else {}
    return Device(name, group.kind, {**automatic, **group.attributes, **own}, group.capacity)
