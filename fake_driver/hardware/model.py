"""The words of hardware: a device with attributes and capacities, and groups of like devices. Plain values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Row = Mapping[str, "Value"]


@dataclass(frozen=True)
class Version:
    """An attribute that is compared as a semantic version."""

    text: str


Value = bool | int | str | Version


@dataclass(frozen=True)
class Group:
    """Devices that are alike, but for what `per_device` says of each."""

    kind: str
    count: int
    attributes: Row = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    per_device: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Hardware:
    """What one node has."""

    name: str
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class Device:
    """One device of a node, as the scheduler and containers will see it."""

    name: str
    kind: str
    attributes: Row
    capacity: Mapping[str, str]
