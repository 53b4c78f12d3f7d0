"""Devices that are more than devices, found in what the driver publishes: tainted ones, divisible ones, shared ones. Pure; for `driver`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from testbed.drivers.slices import Device
from testbed.errors import DriverFailed
from testbed.kube.client import Object
from testbed.vocabulary.quantities import amount

_HINT = "look at spec.classes of the driver file, and at what the driver publishes: dra-testbed hardware show"
Described = tuple[Device, Object]
Counters = Mapping[tuple[str, str], Fraction]


@dataclass(frozen=True)
class Tainted:
    """A device and the taint that its driver gave it."""

    device: Device
    key: str
    value: str
    effect: str
    since: str


@dataclass(frozen=True)
class Part:
    """A device, and what it takes of counters that it shares with others."""

    device: Device
    takes: Counters


@dataclass(frozen=True)
class Divisible:
    """The devices that draw from the same counters. The whole is the one that leaves nothing to others."""

    parts: tuple[Part, ...]
    there: Counters

    @property
    def missing_counters(self) -> frozenset[tuple[str, str]]:
        """Counters that devices draw from and nobody publishes."""
        return frozenset(name for part in self.parts for name in part.takes if name not in self.there)

    @property
    def whole(self) -> Device:
        """The device that excludes all others."""
        for part in self.parts:
            if not any(self._fit(part, other) for other in self.parts if other is not part):
                return part.device
        raise DriverFailed("no device of the driver excludes all others that share its counters", hint=_HINT)

    @property
    def companions(self) -> tuple[Device, Device]:
        """Two parts that can be had at the same time."""
        return self._pair("there are no two parts of a device that can be had at the same time", fit=True)

    @property
    def rivals(self) -> tuple[Device, Device]:
        """Two parts of which only one can be had at a time; neither is the whole."""
        return self._pair("there are no two parts of a device that exclude each other", fit=False)

    def _pair(self, problem: str, *, fit: bool) -> tuple[Device, Device]:
        parts = [part for part in self.parts if part.device != self.whole]
        for one, other in itertools.combinations(parts, 2):
            if self._fit(one, other) is fit:
                return one.device, other.device
        raise DriverFailed(problem, hint=_HINT)

    def _fit(self, one: Part, other: Part) -> bool:
        return all(one.takes.get(name, 0) + other.takes.get(name, 0) <= most for name, most in self.there.items())


def tainted(described: Iterable[Described], effect: str) -> Tainted:
    """The first device with such a taint."""
    for device, spec in described:
        for taint in spec.get("taints", ()):
            if taint["effect"] == effect:
                return Tainted(device, taint["key"], taint.get("value", ""), effect, taint.get("timeAdded", ""))
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


def divisible(slices: Iterable[Object], driver: str) -> Divisible:
    """The first of those in some slices."""
    found = next(all_divisible(slices, driver), None)
    if not found:
        raise DriverFailed("the driver publishes no devices that draw from the same counters", hint=_HINT)
    return found


def all_divisible(slices: Iterable[Object], driver: str) -> Iterator[Divisible]:
    """The devices of each set of counters that several draw from."""
    pools = list(slices)
    sets = {one["name"]: _counters(one) for each in pools for one in each["spec"].get("sharedCounters") or ()}
    parts: dict[str, list[Part]] = {}
    for each in pools:
        for spec in each["spec"].get("devices") or ():
            for draw in spec.get("consumesCounters", ()):
                device = Device(driver, each["spec"]["pool"]["name"], spec["name"])
                parts.setdefault(draw["counterSet"], []).append(Part(device, _counters(draw, draw["counterSet"])))
    return (Divisible(tuple(found), sets.get(name, {})) for name, found in sorted(parts.items()) if len(found) > 1)


def _counters(entry: Object, name: str = "") -> Counters:
    return {(name or entry["name"], key): amount(value["value"]) for key, value in entry["counters"].items()}
