"""Devices that are more than devices, found in what the driver publishes: tainted ones, divisible ones, shared ones. Pure; for `driver`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from testbed.drivers.published.slices import Device, Pool
from testbed.errors import DriverFailed, NothingToJudge
from testbed.kube.client import Object
from testbed.vocabulary.driver.quantities import amount

_HINT = "look at spec.classes of the driver file, and at what the driver publishes: dra-testbed hardware show"
Described = tuple[Device, Object]
Counters = Mapping[tuple[str, str], Fraction]
Pair = tuple[Device, Device]
T = TypeVar("T")


@dataclass(frozen=True)
class TaintedDevice:
    """A device and the taint that its driver gave it."""

    device: Device
    key: str
    value: str
    effect: str
    time_added: str


@dataclass(frozen=True)
class Part:
    """A device, and what it takes of counters that it shares with others."""

    device: Device
    takes: Counters


@dataclass(frozen=True)
class CounterGroup:
    """The devices that draw from one set of counters, and all counters of their pool: a device may draw from other sets as well."""

    parts: tuple[Part, ...]
    there: Counters

    @property
    def missing_counters(self) -> frozenset[tuple[str, str]]:
        """Counters that devices draw from and nobody publishes."""
        return frozenset(name for part in self.parts for name in part.takes if name not in self.there)

    @property
    def whole(self) -> Device | None:
        """The device that excludes all others, if there is one."""
        for part in self.parts:
            if not any(self._fit(part, other) for other in self.parts if other is not part):
                return part.device
        return None

    def pair(self, *, fit: bool) -> Pair | None:
        """Two parts that can be had at the same time, or two of which only one can; neither is the whole."""
        parts = [part for part in self.parts if part.device != self.whole]
        for one, other in itertools.combinations(parts, 2):
            if self._fit(one, other) is fit:
                return one.device, other.device
        return None

    def _fit(self, one: Part, other: Part) -> bool:
        return all(one.takes.get(name, 0) + other.takes.get(name, 0) <= most for name, most in self.there.items())


@dataclass(frozen=True)
class PartitionableDevices:
    """All that can be had in parts on a node. Not every driver's devices can be divided in every way: then there is nothing to judge."""

    sets: tuple[CounterGroup, ...]

    @property
    def whole(self) -> Device:
        """The device that excludes all others of its set; `companions` are parts of the same."""
        found = next((each.whole for each in self._in_order if each.whole and each.pair(fit=True)), None)
        return _there(found, "excludes all others that share its counters, and has parts that can be had together")

    @property
    def compatible_parts(self) -> Pair:
        """Two parts that can be had at the same time; of a whole that can be had, too, where there is one."""
        found = next((pair for each in self._in_order if (pair := each.pair(fit=True))), None)
        return _there(found, "can be had as two parts at the same time")

    @property
    def conflicting_parts(self) -> Pair:
        """Two parts of which only one can be had at a time; neither is the whole."""
        found = next((pair for each in self.sets if (pair := each.pair(fit=False))), None)
        return _there(found, "has two parts that exclude each other")

    @property
    def _in_order(self) -> list[CounterGroup]:
        """Those with a whole first."""
        return sorted(self.sets, key=lambda each: each.whole is None)


def _there(found: T | None, what: str) -> T:
    if found is None:
        raise NothingToJudge(f"no device of the driver on this node {what}")
    return found


def tainted(described: Iterable[Described], effect: str) -> TaintedDevice:
    """The first device with such a taint."""
    for device, spec in described:
        for taint in spec.get("taints", ()):
            if taint["effect"] == effect:
                return TaintedDevice(device, taint["key"], taint.get("value", ""), effect, taint.get("timeAdded", ""))
    raise DriverFailed(f"the driver publishes no device with a taint {effect}", hint=_HINT)


def shared(described: Iterable[Described]) -> tuple[Device, ...]:
    """The devices that several claims may have, sorted."""
    found = tuple(sorted(device for device, spec in described if spec.get("allowMultipleAllocations")))
    if not found:
        raise DriverFailed("the driver publishes no device that several claims may have", hint=_HINT)
    return found


def default_share(spec: Object, capacity: str) -> str:
    """How much of a capacity a claim gets that does not say it; all of it where nothing else is published."""
    said = {key.rpartition("/")[2]: each for key, each in spec.get("capacity", {}).items()}
    if capacity not in said:
        raise DriverFailed(f"device {spec['name']} has no {capacity}", hint="look at spec.sharing of the driver file")
    return str(said[capacity].get("requestPolicy", {}).get("default", said[capacity]["value"]))


def partitionable(pools: Iterable[Pool], driver: str) -> PartitionableDevices:
    """All those in some pools; at least one, and none that a scheduler takes for invalid."""
    found = tuple(each for pool in pools for each in counter_groups(pool, driver))
    missing = sorted("/".join(name) for each in found for name in each.missing_counters)
    if missing:
        raise DriverFailed(f"devices of the driver draw from counters that nobody publishes: {', '.join(missing)}")
    if not found:
        raise DriverFailed("the driver publishes no devices that draw from the same counters", hint=_HINT)
    return PartitionableDevices(found)


def counter_groups(pool: Pool, driver: str) -> Iterator[CounterGroup]:
    """The devices of each set of counters that several draw from, or that lacks a counter which somebody draws from."""
    sets = [each for part in pool.slices for each in part["spec"].get("sharedCounters") or ()]
    there = {name: most for each in sets for name, most in _counters(each).items()}
    parts: dict[str, list[Part]] = {}
    for spec in (each for part in pool.slices for each in part["spec"].get("devices") or ()):
        draws = spec.get("consumesCounters") or ()
        takes = {name: much for draw in draws for name, much in _counters(draw, draw["counterSet"]).items()}
        for draw in draws:
            parts.setdefault(draw["counterSet"], []).append(Part(Device(driver, pool.name, spec["name"]), takes))
    found = (CounterGroup(tuple(members), there) for _, members in sorted(parts.items()))
    return (each for each in found if len(each.parts) > 1 or each.missing_counters)


def _counters(entry: Object, name: str = "") -> Counters:
    return {(name or entry["name"], key): amount(value["value"]) for key, value in entry["counters"].items()}
