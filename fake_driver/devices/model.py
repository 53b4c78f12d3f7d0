"""The words of hardware: devices, what they have and share, and the pools they are published in. Plain values, no I/O.

`Group`, `Partitioning`, `Change` and `NetworkPool` are what a file says; `Device` and `Pool` are what becomes of it on one node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Attributes = Mapping[str, "Value"]
Quantities = Mapping[str, str]


@dataclass(frozen=True)
class Version:
    """An attribute that is compared as a semantic version."""

    text: str


Scalar = bool | int | str | Version
Value = Scalar | tuple[Scalar, ...]  # a tuple holds values of one type


@dataclass(frozen=True)
class Taint:
    """Keeps claims that do not tolerate it away from a device; NoExecute also ends pods that have it."""

    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True)
class RequestPolicy:
    """What a request for one capacity of a shared device may be; the API calls it requestPolicy."""

    default: str
    valid_values: tuple[str, ...] = ()
    minimum: str = ""
    maximum: str = ""
    step: str = ""


@dataclass(frozen=True)
class AttachBehavior:
    """Making binding conditions true takes so many seconds, and fails so many times before it succeeds."""

    seconds: int = 1
    failures: int = 0


@dataclass(frozen=True)
class Binding:
    """What has to be true of a device before a pod that got it may start; the API's binding conditions.

    Without `attaching` somebody else makes them true.
    """

    conditions: tuple[str, ...] = ()
    failure_conditions: tuple[str, ...] = ()
    binds_to_node: bool = False
    attaching: AttachBehavior | None = None


@dataclass(frozen=True)
class DeviceNetwork:
    """How a network device looks from inside: its interface, its addresses with their prefix length, its hardware address."""

    interface: str
    ips: tuple[str, ...]
    hardware_address: str


@dataclass(frozen=True)
class NetworkTemplate:
    """What a file says of the network of a group: how interfaces are called, and where addresses come from."""

    interface: str
    ranges: tuple[str, ...] = ()


@dataclass(frozen=True)
class CounterConsumption:
    """What a device takes from a set of counters that it shares with others, and all that the set has."""

    counter_set: str
    counters: Quantities
    available: Quantities


@dataclass(frozen=True)
class PartitionProfile:
    """A way to cut a device: up to `count` parts of it, each of which takes so much."""

    name: str
    count: int
    takes: Quantities
    attributes: Attributes = field(default_factory=dict)
    capacity: Quantities = field(default_factory=dict)


@dataclass(frozen=True)
class Partitioning:
    """A device that can be had as a whole or in parts: what there is to share, and the parts."""

    counters: Quantities
    profiles: tuple[PartitionProfile, ...]
    whole: bool = True


@dataclass(frozen=True)
class DeviceGroup:
    """Devices that are alike, but for what `spread` and `per_device` say of each."""

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
        """How many devices one of the group stands for: itself and all its parts."""
        return 1 + sum(profile.count for profile in self.partitions.profiles) if self.partitions else 1


@dataclass(frozen=True)
class DeviceChange:
    """How some devices differ from what their group says. Patterns are those of a shell."""

    nodes: tuple[str, ...] = ("*",)
    devices: tuple[str, ...] = ("*",)
    attributes: Attributes = field(default_factory=dict)
    capacity: Quantities = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    absent: bool = False


@dataclass(frozen=True)
class NetworkPool:
    """Devices that belong to no node: everywhere, or on the nodes that a selector finds."""

    name: str
    groups: tuple[DeviceGroup, ...]
    node_selector: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Hardware:
    """All that a file says."""

    name: str
    groups: tuple[DeviceGroup, ...]
    changes: tuple[DeviceChange, ...] = ()
    pools: tuple[NetworkPool, ...] = ()

    @property
    def all_groups(self) -> tuple[DeviceGroup, ...]:
        """Those of nodes and those of pools."""
        return (*self.groups, *(group for pool in self.pools for group in pool.groups))


@dataclass(frozen=True)
class Device:
    """One device, as the scheduler and containers will see it."""

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
    parent: str = ""  # of a part: the name of the whole
    container_edits: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pool:
    """Devices that are published together: those of a node, or a pool of the network."""

    name: str
    devices: tuple[Device, ...]
    node: str = ""  # empty: of the network
    node_selector: Mapping[str, Any] | None = None
