"""Reads a driver's ResourceSlices: pools, whether they are complete, and their devices. Pure; used by `ready` and the vocabulary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from testbed.drivers.published.placement import named_nodes
from testbed.kube.client import Object
from testbed.models.names import value_of

# The keys of `optional` in driver files, with the field of ResourceSlices that devices of this kind have.
_KIND_FIELDS = {
    "partitions": "consumesCounters",
    "capacity": "allowMultipleAllocations",
    "binding": "bindingConditions",
}


@dataclass(frozen=True, order=True)
class Device:
    """The identity of a device, as in allocations."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.name}"

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class Pool:
    """The newest generation of a pool: its slices and their expected number."""

    name: str
    generation: int
    expected: int
    slices: tuple[Object, ...]

    @property
    def complete(self) -> bool:
        """Return True if the pool has as many slices as the driver announces."""
        return len(self.slices) == self.expected

    @property
    def nodes(self) -> frozenset[str]:
        """Return the nodes that the pool's slices name; none for network-attached devices."""
        return frozenset[str]().union(*(named_nodes(each["spec"]) for each in self.slices))

    @property
    def devices(self) -> int:
        """Return the number of devices."""
        return sum(len(each["spec"].get("devices") or ()) for each in self.slices)

    def __str__(self) -> str:
        return f"pool {self.name}: {len(self.slices)} of {self.expected} slices of generation {self.generation}"

    __repr__ = __str__  # what a failed assertion shows


def pools(slices: Iterable[Object], driver: str) -> list[Pool]:
    """Return the driver's pools, sorted by name. Slices of older generations do not count."""
    by_pool: dict[str, list[Object]] = defaultdict(list)
    for each in slices:
        if each["spec"]["driver"] == driver:
            by_pool[each["spec"]["pool"]["name"]].append(each)
    return [_pool(name, members) for name, members in sorted(by_pool.items())]


def without_other_devices(slices: Iterable[Object], others: Mapping[str, Iterable[str]], driver: str) -> list[Object]:
    """Return the slices without devices that match `others`, the patterns of attribute values in devices.others."""
    found = []
    for each in slices:
        devices = [device for device in each["spec"].get("devices") or () if not _matches(device, others, driver)]
        found.append({**each, "spec": {**each["spec"], "devices": devices}})
    return found


def reserved_kinds(slices: Iterable[Object], others: Mapping[str, Iterable[str]], driver: str) -> frozenset[str]:
    """Return the optional kinds whose devices no other class selects: none of them is ordinary or of a second kind."""
    every = list(slices)
    kinds = [_kinds(device) for device in _devices(every)]
    mixed = [each for each in kinds if len(each) > 1]
    ordinary = [_kinds(device) for device in _devices(without_other_devices(every, others, driver))]
    return frozenset[str]().union(*kinds).difference(*mixed, *ordinary)


def _devices(slices: Iterable[Object]) -> Iterator[Object]:
    return (device for each in slices for device in each["spec"].get("devices") or ())


def _kinds(device: Object) -> frozenset[str]:
    return frozenset(kind for kind, field in _KIND_FIELDS.items() if device.get(field))


def _matches(device: Object, patterns: Mapping[str, Iterable[str]], driver: str) -> bool:
    attributes = device.get("attributes", {})
    values = {name: value_of(name, attributes, driver) for name in patterns}
    return any(
        fnmatchcase(_text(value), pattern) for name, value in values.items() if value for pattern in patterns[name]
    )


def _pool(name: str, members: list[Object]) -> Pool:
    newest = max(each["spec"]["pool"]["generation"] for each in members)
    current = tuple(each for each in members if each["spec"]["pool"]["generation"] == newest)
    return Pool(name, newest, current[0]["spec"]["pool"]["resourceSliceCount"], current)


def _text(value: dict[str, object]) -> str:
    return str(next(iter(value.values())))
