"""What a driver's ResourceSlices say: pools, complete or not, their devices and who they are. Pure; for readiness and the vocabulary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from testbed.errors import UsageError
from testbed.kube.client import Object

# Devices that are more than devices, by the words of `classes` in driver files: what their entries in ResourceSlices have.
_KIND_FIELDS = {
    "partitions": "consumesCounters",
    "capacity": "allowMultipleAllocations",
    "binding": "bindingConditions",
}


@dataclass(frozen=True, order=True)
class Device:
    """A device, as the scheduler names it."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.name}"

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class Pool:
    """The newest generation of one pool: its slices and how many there should be."""

    name: str
    generation: int
    wanted: int
    slices: tuple[Object, ...]

    @property
    def complete(self) -> bool:
        """Whether the scheduler may take the pool for what the driver meant."""
        return len(self.slices) == self.wanted

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes that its slices belong to; none for devices of the network."""
        return frozenset(each["spec"]["nodeName"] for each in self.slices if each["spec"].get("nodeName"))

    @property
    def devices(self) -> int:
        """How many devices it holds."""
        return sum(len(each["spec"].get("devices") or ()) for each in self.slices)

    def __str__(self) -> str:
        return f"pool {self.name}: {len(self.slices)} of {self.wanted} slices of generation {self.generation}"

    __repr__ = __str__  # what a failed assertion shows


def pools(slices: Iterable[Object], driver: str) -> list[Pool]:
    """The driver's pools, sorted by name. Slices of older generations do not count."""
    by_pool: dict[str, list[Object]] = defaultdict(list)
    for each in slices:
        if each["spec"]["driver"] == driver:
            by_pool[each["spec"]["pool"]["name"]].append(each)
    return [_pool(name, members) for name, members in sorted(by_pool.items())]


def devices_by_attribute(slices: Iterable[Object], driver: str, attribute: str) -> dict[str, Device]:
    """Device by the value of the attribute that containers show, too. Attributes without a domain are the driver's own."""
    found: dict[str, Device] = {}
    for pool in pools(slices, driver):
        for device in (entry for each in pool.slices for entry in each["spec"].get("devices") or ()):
            attributes = device.get("attributes", {})
            value = attributes.get(attribute) or attributes.get(attribute.removeprefix(f"{driver}/"))
            if value:
                found[_text(value)] = Device(driver, pool.name, device["name"])
    return found


def devices_by_name(slices: Iterable[Object], driver: str, node: str, shown: Iterable[str]) -> dict[str, Device]:
    """Device by its name, for containers on a node: of slices of that node, or of none. What they show has to mean one device."""
    found: dict[str, set[Device]] = defaultdict(set)
    for pool in pools(slices, driver):
        for each in (part for part in pool.slices if (part["spec"].get("nodeName") or node) == node):
            for name in (entry["name"] for entry in each["spec"].get("devices") or ()):
                found[name].add(Device(driver, pool.name, name))
    for name in (each for each in shown if len(found.get(each, ())) > 1):
        one, other, *_ = sorted(found[name])
        raise UsageError(
            f"device {name} of a container on node {node} may be that of pool {one.pool} or that of pool {other.pool}",
            hint="names do not tell them apart: let spec.probe of the driver file show an attribute, as its identityAttribute says",
        )
    return {name: min(devices) for name, devices in found.items()}


def without_other_devices(slices: Iterable[Object], others: Mapping[str, Iterable[str]], driver: str) -> list[Object]:
    """The slices without devices that have an attribute of `others` with a value that fits one of its patterns."""
    found = []
    for each in slices:
        devices = [one for one in each["spec"].get("devices") or () if not _matches(one, others, driver)]
        found.append({**each, "spec": {**each["spec"], "devices": devices}})
    return found


def reserved_kinds(slices: Iterable[Object], others: Mapping[str, Iterable[str]], driver: str) -> frozenset[str]:
    """The special kinds whose devices are no ordinary ones and of no other kind, so that nobody else gets them. There has to be one."""
    every = list(slices)
    kinds = [_kinds(device) for device in _devices(every)]
    mixed = [each for each in kinds if len(each) > 1]
    usual = [_kinds(device) for device in _devices(without_other_devices(every, others, driver))]
    return frozenset[str]().union(*kinds).difference(*mixed, *usual)


def _devices(slices: Iterable[Object]) -> Iterator[Object]:
    return (device for each in slices for device in each["spec"].get("devices") or ())


def _kinds(device: Object) -> frozenset[str]:
    return frozenset(kind for kind, field in _KIND_FIELDS.items() if device.get(field))


def _matches(device: Object, patterns: Mapping[str, Iterable[str]], driver: str) -> bool:
    attributes = device.get("attributes", {})
    said = {name: attributes.get(name) or attributes.get(f"{driver}/{name}") for name in patterns}
    return any(
        fnmatchcase(_text(value), pattern) for name, value in said.items() if value for pattern in patterns[name]
    )


def _pool(name: str, members: list[Object]) -> Pool:
    newest = max(each["spec"]["pool"]["generation"] for each in members)
    current = tuple(each for each in members if each["spec"]["pool"]["generation"] == newest)
    return Pool(name, newest, current[0]["spec"]["pool"]["resourceSliceCount"], current)


def _text(value: dict[str, object]) -> str:
    return str(next(iter(value.values())))
