"""Published devices that use optional parts of DRA: tainted, partitionable and shareable ones. Pure; for Driver."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from testbed.drivers.published.slices import Device, Pool
from testbed.errors import DriverFailed, NothingToJudge
from testbed.kube.client import Object
from testbed.models.names import value_of
from testbed.vocabulary.driver.quantities import amount

_HINT = "check spec.optional of the driver file, and what the driver publishes: dra-testbed hardware show"
Described = tuple[Device, Object]
Counters = Mapping[tuple[str, str], Fraction]
Pair = tuple[Device, Device]
T = TypeVar("T")


@dataclass(frozen=True)
class TaintedDevice:
    """A device and a taint in its ResourceSlice."""

    device: Device
    key: str
    value: str
    effect: str
    time_added: str


@dataclass(frozen=True)
class Part:
    """A device, and what it consumes of shared counters."""

    device: Device
    consumes: Counters


@dataclass(frozen=True)
class CounterGroup:
    """The devices that consume one counter set, and all counters of their pool, because devices may consume several sets."""

    parts: tuple[Part, ...]
    available: Counters

    @property
    def missing_counters(self) -> frozenset[tuple[str, str]]:
        """Return the counters that devices consume but the driver does not publish."""
        return frozenset(name for part in self.parts for name in part.consumes if name not in self.available)

    @property
    def whole(self) -> Device | None:
        """Return the device that excludes all others, or None."""
        for part in self.parts:
            if not any(self._fit(part, other) for other in self.parts if other is not part):
                return part.device
        return None

    def pair(self, *, fit: bool) -> Pair | None:
        """Return two parts that can be allocated together (`fit`) or not, or None; neither is the whole."""
        parts = [part for part in self.parts if part.device != self.whole]
        for one, other in itertools.combinations(parts, 2):
            if self._fit(one, other) is fit:
                return one.device, other.device
        return None

    def _fit(self, one: Part, other: Part) -> bool:
        return all(
            one.consumes.get(name, 0) + other.consumes.get(name, 0) <= limit for name, limit in self.available.items()
        )


@dataclass(frozen=True)
class PartitionableDevices:
    """All partitionable devices of a node. A property that this driver's devices do not have raises NothingToJudge."""

    groups: tuple[CounterGroup, ...]

    @property
    def whole(self) -> Device:
        """Return the device that excludes all others of its group. `compatible_parts` are of the same group."""
        found = next((each.whole for each in self._in_order if each.whole and each.pair(fit=True)), None)
        return _required(found, "excludes all others that share its counters, and has parts that fit together")

    @property
    def compatible_parts(self) -> Pair:
        """Return two parts that can be allocated together, if possible of a group with a whole."""
        found = next((pair for each in self._in_order if (pair := each.pair(fit=True))), None)
        return _required(found, "has two parts that can be allocated together")

    @property
    def conflicting_parts(self) -> Pair:
        """Return two parts that exclude each other; neither is the whole."""
        found = next((pair for each in self.groups if (pair := each.pair(fit=False))), None)
        return _required(found, "has two parts that exclude each other")

    @property
    def _in_order(self) -> list[CounterGroup]:
        """Return the groups, those with a whole first."""
        return sorted(self.groups, key=lambda each: each.whole is None)


def _required(found: T | None, property_: str) -> T:
    if found is None:
        raise NothingToJudge(f"no device of the driver on this node {property_}")
    return found


def tainted(described: Iterable[Described], effect: str) -> TaintedDevice:
    """Return the first device that has a taint with this effect; DriverFailed if there is none."""
    for device, spec in described:
        for taint in spec.get("taints", ()):
            if taint["effect"] == effect:
                return TaintedDevice(device, taint["key"], taint.get("value", ""), effect, taint.get("timeAdded", ""))
    raise DriverFailed(f"the driver publishes no device that has a taint with effect {effect}", hint=_HINT)


def shareable(described: Iterable[Described]) -> tuple[Device, ...]:
    """Return the devices that allow multiple allocations, sorted; DriverFailed if there is none."""
    found = tuple(sorted(device for device, spec in described if spec.get("allowMultipleAllocations")))
    if not found:
        raise DriverFailed("the driver publishes no device that allows multiple allocations", hint=_HINT)
    return found


def default_share(spec: Object, capacity: str, driver: str) -> str:
    """Return how much of a capacity a claim gets that does not request an amount: the policy's default, or all of it."""
    published: Object | None = value_of(capacity, spec.get("capacity", {}), driver)
    if published is None:
        raise DriverFailed(
            f"device {spec['name']} has no capacity {capacity}", hint="check spec.optional.capacity of the driver file"
        )
    return str(published.get("requestPolicy", {}).get("default", published["value"]))


def partitionable(pools: Iterable[Pool], driver: str) -> PartitionableDevices:
    """Return the partitionable devices in some pools; DriverFailed if there is none or a counter is missing."""
    found = tuple(each for pool in pools for each in counter_groups(pool, driver))
    missing = sorted("/".join(name) for each in found for name in each.missing_counters)
    if missing:
        raise DriverFailed(f"devices of the driver consume counters that it does not publish: {', '.join(missing)}")
    if not found:
        raise DriverFailed("the driver publishes no devices that consume the same counters", hint=_HINT)
    return PartitionableDevices(found)


def counter_groups(pool: Pool, driver: str) -> Iterator[CounterGroup]:
    """Yield the devices of each counter set that several devices consume, or that lacks a counter that one consumes."""
    sets = [each for part in pool.slices for each in part["spec"].get("sharedCounters") or ()]
    available = {name: limit for each in sets for name, limit in _counters(each).items()}
    parts: dict[str, list[Part]] = {}
    for spec in (each for part in pool.slices for each in part["spec"].get("devices") or ()):
        entries = spec.get("consumesCounters") or ()
        consumes = {name: used for each in entries for name, used in _counters(each, each["counterSet"]).items()}
        for each in entries:
            parts.setdefault(each["counterSet"], []).append(Part(Device(driver, pool.name, spec["name"]), consumes))
    found = (CounterGroup(tuple(members), available) for _, members in sorted(parts.items()))
    return (each for each in found if len(each.parts) > 1 or each.missing_counters)


def _counters(entry: Object, name: str = "") -> Counters:
    return {(name or entry["name"], key): amount(value["value"]) for key, value in entry["counters"].items()}
