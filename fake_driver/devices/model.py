"""The model of hardware: what a hardware file describes, and the devices and pools of a node that follow from it. Plain values.

`Hardware` is a whole file, with `DeviceGroup`, `Partitioning`, `DeviceChange` and `NetworkPool`. `Device` and `Pool` are those of a node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Attributes = Mapping[str, "Value"]
Quantities = Mapping[str, str]


@dataclass(frozen=True)
class Version:
    """The value of an attribute that is compared as a semantic version."""

    text: str


Scalar = bool | int | str | Version
Value = Scalar | tuple[Scalar, ...]  # a tuple holds values of one type


@dataclass(frozen=True)
class Taint:
    """A taint of a device, as in the API."""

    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True)
class RequestPolicy:
    """The requestPolicy of one capacity of a shared device, as in the API."""

    default: str
    valid_values: tuple[str, ...] = ()
    minimum: str = ""
    maximum: str = ""
    step: str = ""


@dataclass(frozen=True)
class AttachBehavior:
    """How the driver attaches a device: each attempt takes some seconds, and the first ones fail."""

    seconds: int = 1
    failures: int = 0


@dataclass(frozen=True)
class Binding:
    """The binding conditions of a device, as in the API. Without `attaching`, another controller sets them."""

    conditions: tuple[str, ...] = ()
    failure_conditions: tuple[str, ...] = ()
    binds_to_node: bool = False
    attaching: AttachBehavior | None = None


@dataclass(frozen=True)
class DeviceNetwork:
    """The interface of a network device, with its IP addresses and prefix lengths, and its hardware address."""

    interface: str
    ips: tuple[str, ...]
    hardware_address: str


@dataclass(frozen=True)
class NetworkTemplate:
    """The network of a group of devices: the prefix of interface names, and the ranges of addresses."""

    interface: str
    ranges: tuple[str, ...] = ()


@dataclass(frozen=True)
class CounterConsumption:
    """What a device consumes from a counter set, and how much the set has in all."""

    counter_set: str
    counters: Quantities
    available: Quantities


@dataclass(frozen=True)
class PartitionProfile:
    """One kind of partition of a device: up to `count` of them with the same consumption."""

    name: str
    count: int
    takes: Quantities
    attributes: Attributes = field(default_factory=dict)
    capacity: Quantities = field(default_factory=dict)


@dataclass(frozen=True)
class Partitioning:
    """How a device can be partitioned: the counters of the whole device, and the profiles of its partitions."""

    counters: Quantities
    profiles: tuple[PartitionProfile, ...]
    whole: bool = True


@dataclass(frozen=True)
class DeviceGroup:
    """Similar devices. `spread` and `per_device` give each its own attributes."""

    kind: str
    count: int
    attributes: Attributes = field(default_factory=dict)
    capacity: Quantities = field(default_factory=dict)
    per_device: tuple[Attributes, ...] = ()
    spread: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    nodes: tuple[str, ...] = ("*",)
    taints: tuple[Taint, ...] = ()
    shared: bool = False
    policies: Mapping[str, RequestPolicy] = field(default_factory=dict)
    binding: Binding | None = None
    network: NetworkTemplate | None = None
    partitions: Partitioning | None = None
    container_edits: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return how many devices are published for one of the group: itself and its partitions."""
        return 1 + sum(profile.count for profile in self.partitions.profiles) if self.partitions else 1


@dataclass(frozen=True)
class DeviceChange:
    """A difference of some devices from their group. `nodes` and `devices` are shell patterns."""

    nodes: tuple[str, ...] = ("*",)
    devices: tuple[str, ...] = ("*",)
    attributes: Attributes = field(default_factory=dict)
    capacity: Quantities = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    absent: bool = False


@dataclass(frozen=True)
class NetworkPool:
    """A pool of devices that belong to no node. They can be used on all nodes or on those that the selector matches."""

    name: str
    groups: tuple[DeviceGroup, ...]
    node_selector: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Hardware:
    """The content of a hardware file."""

    name: str
    groups: tuple[DeviceGroup, ...]
    changes: tuple[DeviceChange, ...] = ()
    pools: tuple[NetworkPool, ...] = ()

    @property
    def all_groups(self) -> tuple[DeviceGroup, ...]:
        """Return the groups of nodes and of network pools."""
        return (*self.groups, *(group for pool in self.pools for group in pool.groups))


@dataclass(frozen=True)
class Device:
    """A device of a pool."""

    name: str
    kind: str
    attributes: Attributes
    capacity: Quantities
    taints: tuple[Taint, ...] = ()
    consumes_counters: tuple[CounterConsumption, ...] = ()
    shared: bool = False
    policies: Mapping[str, RequestPolicy] = field(default_factory=dict)
    binding: Binding | None = None
    network: DeviceNetwork | None = None
    parent: str = ""  # of a partition: the name of the whole device
    container_edits: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pool:
    """The devices of a node, or a network pool."""

    name: str
    devices: tuple[Device, ...]
    node: str = ""  # empty for a network pool
    node_selector: Mapping[str, Any] | None = None
