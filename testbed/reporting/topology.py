"""The topology of published devices, from the ResourceSlices of any drivers: locations, NUMA nodes, PCIe roots, devices. Pure.

`dra-testbed hardware show` draws it. The slices come from a cluster or from a hardware file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.drivers.published import slices as published
from testbed.kube.client import Object

_STANDARD = "resource.kubernetes.io/"
_ANY_NODE = "any node"


@dataclass(frozen=True)
class PublishedDevice:
    """A device of a ResourceSlice, with plain values."""

    driver: str
    pool: str
    name: str
    attributes: Mapping[str, Any]
    capacity: Mapping[str, str]
    taints: tuple[str, ...] = ()
    shared: bool = False
    binding_conditions: tuple[str, ...] = ()

    @property
    def numa(self) -> int | None:
        """Return the NUMA node, from the standard attribute or one without a domain; None if it has neither."""
        found = self.attributes.get(f"{_STANDARD}numaNode", self.attributes.get("numaNode"))
        return found if isinstance(found, int) else None

    @property
    def root(self) -> str:
        """Return the PCIe root, or ''."""
        found = self.attributes.get(f"{_STANDARD}pcieRoot", "")
        return found if isinstance(found, str) else ""

    @property
    def parent(self) -> str:
        """Return the name of the whole device if this is a partition, or ''."""
        return str(self.attributes.get("parent", ""))

    @property
    def appearance(self) -> tuple[object, ...]:
        """Return what devices must have in common to be drawn as one."""
        kind = (self.attributes.get("model"), self.attributes.get("profile"), tuple(self.capacity.items()))
        return (*kind, self.taints, self.shared, self.binding_conditions, self.driver)


@dataclass(frozen=True)
class Location:
    """A node or a network-attached pool, with its pools and devices. `scope` is '' for a node, otherwise which nodes can use it."""

    name: str
    scope: str
    pools: tuple[published.Pool, ...]
    drivers: tuple[str, ...]
    devices: tuple[PublishedDevice, ...]

    def by_numa(self) -> list[tuple[int | None, list[PublishedDevice]]]:
        """Return the devices by NUMA node; those without one come last."""
        found = _grouped((device.numa, device) for device in self.devices)
        return sorted(found.items(), key=lambda item: (item[0] is None, item[0] or 0))

    def as_data(self) -> dict[str, Any]:
        """Return the location as data for JSON."""
        return {
            "name": self.name,
            "where": self.scope or "node",
            "pools": [
                {
                    "driver": driver,
                    "pool": pool.name,
                    "generation": pool.generation,
                    "slices": len(pool.slices),
                    "complete": pool.complete,
                }
                for driver, pool in zip(self.drivers, self.pools, strict=True)
            ],
            "devices": [
                {
                    "driver": each.driver,
                    "pool": each.pool,
                    "name": each.name,
                    "numaNode": each.numa,
                    "pcieRoot": each.root or None,
                    "parent": each.parent or None,
                    "attributes": dict(each.attributes),
                    "capacity": dict(each.capacity),
                    "taints": list(each.taints),
                    "shared": each.shared,
                    "bindingConditions": list(each.binding_conditions),
                }
                for each in self.devices
            ],
        }


def locations(slices: Iterable[Object], node: str | None = None) -> list[Location]:
    """Return all locations, nodes first; with `node`, that node and the network-attached pools."""
    everything = list(slices)
    found: dict[tuple[str, str], list[tuple[str, published.Pool]]] = defaultdict(list)
    for driver in sorted({each["spec"]["driver"] for each in everything}):
        for pool in published.pools(everything, driver):
            spec = pool.slices[0]["spec"]
            found[_scope(spec), spec.get("nodeName") or pool.name].append((driver, pool))
    return [
        _location(name, scope, members)
        for (scope, name), members in sorted(found.items())
        if scope or node in (None, name)
    ]


def by_root(devices: Iterable[PublishedDevice]) -> list[tuple[str, list[PublishedDevice]]]:
    """Return the devices by PCIe root; those without one come last."""
    found = _grouped((device.root, device) for device in devices)
    return sorted(found.items(), key=lambda item: (not item[0], item[0]))


def group_similar(devices: Sequence[PublishedDevice]) -> list[list[PublishedDevice]]:
    """Group neighbouring devices that look the same, in their order."""
    found: list[list[PublishedDevice]] = []
    for device in devices:
        if found and found[-1][0].appearance == device.appearance:
            found[-1].append(device)
        else:
            found.append([device])
    return found


def _location(name: str, scope: str, members: list[tuple[str, published.Pool]]) -> Location:
    drivers = tuple(driver for driver, _ in members)
    devices = tuple(
        _device(driver, pool.name, each)
        for driver, pool in members
        for slice_ in sorted(pool.slices, key=lambda slice_: str(slice_["metadata"]["name"]))
        for each in slice_["spec"].get("devices") or ()
    )
    return Location(name, scope, tuple(pool for _, pool in members), drivers, devices)


def _scope(spec: Object) -> str:
    if spec.get("nodeName"):
        return ""
    if spec.get("nodeSelector"):
        return f"nodes with {_selector(spec['nodeSelector'])}"
    return _ANY_NODE


def _selector(selector: Object) -> str:
    rules = [rule for term in selector.get("nodeSelectorTerms") or () for rules in term.values() for rule in rules]
    return " and ".join(
        " ".join((rule["key"], rule["operator"], ", ".join(rule.get("values") or ()))).strip() for rule in rules
    )


def _device(driver: str, pool: str, device: Object) -> PublishedDevice:
    return PublishedDevice(
        driver,
        pool,
        device["name"],
        {name: _plain(value) for name, value in (device.get("attributes") or {}).items()},
        {name: value["value"] for name, value in (device.get("capacity") or {}).items()},
        tuple(map(_taint, device.get("taints") or ())),
        bool(device.get("allowMultipleAllocations")),
        tuple(device.get("bindingConditions") or ()),
    )


def _plain(value: Object) -> Any:
    return next(iter(value.values()), None)


def _taint(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _grouped(pairs: Iterable[tuple[Any, PublishedDevice]]) -> dict[Any, list[PublishedDevice]]:
    found: dict[Any, list[PublishedDevice]] = defaultdict(list)
    for key, device in pairs:
        found[key].append(device)
    return dict(found)
