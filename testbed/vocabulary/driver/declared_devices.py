"""Contradictions between the driver file and the published devices, each with device and field. Pure; for Driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from testbed.drivers.published.placement import is_of_nodes, is_usable, place_of
from testbed.drivers.published.slices import Pool
from testbed.errors import NothingToJudge
from testbed.kube.client import Object
from testbed.models.driver.devices import Expect
from testbed.models.driver_file import DriverFile
from testbed.models.driver_sections import Partitions
from testbed.models.names import value_of
from testbed.vocabulary.driver.optional_devices import CounterGroup, counter_groups
from testbed.vocabulary.driver.quantities import amount

# The keys of `optional` in driver files, with the field of devices that have the feature.
_FIELDS = {
    "partitions": "consumesCounters",
    "capacity": "allowMultipleAllocations",
    "taints": "taints",
    "binding": "bindingConditions",
}
_TESTS = "suites.dra-testbed.example/"  # begins the keys of the taints that tests add to devices


@dataclass(frozen=True)
class Contradictions:
    """The published devices compared with the driver file. Each contradiction names a device or a node, and the field or the key.

    `nodes` are the labels of the expected nodes by their names.
    """

    driver_file: DriverFile
    nodes: Mapping[str, Mapping[str, str]]
    pools: tuple[Pool, ...]
    ordinary: tuple[Pool, ...]

    @property
    def shared_devices(self) -> tuple[str, ...]:
        """Return the ordinary devices that several claims can share although the driver file does not declare it."""
        return () if self.driver_file.are_devices_shared else tuple(shared(self.ordinary))

    @property
    def devices_without_node(self) -> tuple[str, ...]:
        """Return the ordinary devices that belong to no node although the driver file declares that they do."""
        return tuple(without_node(self.ordinary)) if self.driver_file.are_devices_local else ()

    @property
    def nodes_with_too_few_devices(self) -> tuple[str, ...]:
        """Return the expected nodes that can use fewer ordinary devices than the driver file promises."""
        counts = self._counts((spec, device) for _, spec, device in _devices(self.ordinary))
        return tuple(too_few(counts, self.driver_file.devices.per_node, "spec.devices.perNode"))

    @property
    def nodes_with_too_few_shareable_devices(self) -> tuple[str, ...]:
        """Return the expected nodes that have fewer shareable devices than the driver file promises.

        If these are the ordinary devices, no others count.
        """
        declared = self.driver_file.optional.capacity
        among = self.ordinary if self.driver_file.are_devices_shared else self.pools
        counts = self._counts((spec, each) for _, spec, each in _devices(among) if each.get("allowMultipleAllocations"))
        return tuple(too_few(counts, declared.per_node, "spec.optional.capacity.perNode")) if declared else ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """Return what the expected nodes lack of the partitionable devices that the driver file promises."""
        return tuple(each for node in sorted(self.nodes) for each in self.partitions_on(node))

    def partitions_on(self, node: str) -> tuple[str, ...]:
        """Return what a node lacks of the partitionable devices that the driver file promises."""
        declared, driver = self.driver_file.optional.partitions, self.driver_file.driver
        groups = (each for pool in self.pools if node in pool.nodes for each in counter_groups(pool, driver))
        return tuple(broken_promises(groups, declared, node)) if declared else ()

    @property
    def undeclared_features(self) -> tuple[str, ...]:
        """Return the fields of optional features that ordinary devices have although the driver file does not name their class for it."""
        classes, ordinary = self.driver_file.classes, set(self.driver_file.devices.classes)
        undeclared = {field: kind for kind, field in _FIELDS.items() if getattr(classes, kind) not in ordinary}
        return tuple(undeclared_fields(self.ordinary, undeclared))

    @property
    def devices_without_version(self) -> tuple[str, ...]:
        """Return the ordinary devices that have no attribute of type version."""
        return tuple(without_version(self.ordinary))

    @property
    def unexpected_values(self) -> tuple[str, ...]:
        """Return the values of ordinary devices that the driver file does not expect; NothingToJudge if it expects no values."""
        if not (self.driver_file.devices.expect.attributes or self.driver_file.devices.expect.capacity):
            raise NothingToJudge("the driver file expects no values (spec.devices.expect)")
        return tuple(unexpected(self.ordinary, self.driver_file.devices.expect, self.driver_file.driver))

    def _counts(self, found: Iterable[tuple[Object, Object]]) -> dict[str, int]:
        """Return how many of these devices, each with its slice's spec, each expected node can use."""
        every = list(found)
        return {
            node: sum(is_usable(spec, device, node, labels) for spec, device in every)
            for node, labels in self.nodes.items()
        }


def shared(ordinary: Iterable[Pool]) -> Iterator[str]:
    """Yield the ordinary devices that several claims can share."""
    for pool, _, device in _devices(ordinary):
        if device.get("allowMultipleAllocations"):
            yield f"device {device['name']} of pool {pool.name} has allowMultipleAllocations: true"


def without_node(ordinary: Iterable[Pool]) -> Iterator[str]:
    """Yield the ordinary devices that belong to no node."""
    for pool, spec, device in _devices(ordinary):
        if not is_of_nodes(spec, device):
            field = "allNodes: true" if place_of(spec, device).get("allNodes") else "neither nodeName nor nodeSelector"
            yield f"device {device['name']} of pool {pool.name} has {field}"


def undeclared_fields(ordinary: Iterable[Pool], undeclared: Mapping[str, str]) -> Iterator[str]:
    """Yield the ordinary devices that have one of these fields. `undeclared` has the key of `optional` for each field.

    Taints without effect, and those that tests add, do not count.
    """
    for pool, _, device in _devices(ordinary):
        for field, kind in undeclared.items():
            entries = device.get(field)
            if field == "taints":
                entries = [
                    one for one in entries or () if one["effect"] != "None" and not one["key"].startswith(_TESTS)
                ]
            if entries:
                yield (
                    f"device {device['name']} of pool {pool.name} has {field}, and spec.optional.{kind} of the driver file "
                    "does not name its class"
                )


def without_version(ordinary: Iterable[Pool]) -> Iterator[str]:
    """Yield the ordinary devices without an attribute of type version."""
    for pool, _, device in _devices(ordinary):
        if not any("version" in each for each in device.get("attributes", {}).values()):
            yield f"device {device['name']} of pool {pool.name}"


def too_few(counts: Mapping[str, int], promised: int, key: str) -> Iterator[str]:
    """Yield the nodes with fewer devices than the driver file promises with this key."""
    for node, count in sorted(counts.items()):
        if count < promised:
            yield f"node {node} has {count}, but {key} is {promised}"


def unexpected(ordinary: Iterable[Pool], expect: Expect, driver: str) -> Iterator[str]:
    """Yield the attributes and capacities of ordinary devices that differ from those that the driver file expects."""
    for pool, _, device in _devices(ordinary):
        who = f"device {device['name']} of pool {pool.name}"
        for name, wanted in expect.attributes.items():
            found = value_of(name, device.get("attributes", {}), driver)
            value = next(iter(found.values())) if found else None
            if type(value) is not type(wanted) or value != wanted:
                yield f"attribute {name} of {who} is {value!r}, but spec.devices.expect has {wanted!r}"
        for name, literal in expect.capacity.items():
            capacity = value_of(name, device.get("capacity", {}), driver)
            if capacity is None or amount(capacity["value"]) != amount(literal):
                yield f"capacity {name} of {who} is {capacity and capacity['value']}, but spec.devices.expect has {literal}"


def broken_promises(groups: Iterable[CounterGroup], declared: Partitions, node: str) -> Iterator[str]:
    """Yield what a node lacks of the partitionable devices that the driver file promises.

    If the counters are larger than what the device has, the whole device can be allocated beside its parts, and none excludes all others.
    """
    found = tuple(groups)
    whole = sum(1 for each in found if each.whole)
    parts = sum(len(each.parts) for each in found) - whole
    key = "spec.optional.partitions"
    if whole < declared.whole:
        yield (
            f"node {node} has {whole} devices that exclude all others that consume the same counters "
            f"(consumesCounters, sharedCounters), but {key}.whole is {declared.whole}"
        )
    if parts < declared.parts:
        yield f"node {node} has {parts} partitions, but {key}.parts is {declared.parts}"


def _devices(pools: Iterable[Pool]) -> Iterator[tuple[Pool, Object, Object]]:
    return (
        (pool, part["spec"], device)
        for pool in pools
        for part in pool.slices
        for device in part["spec"].get("devices") or ()
    )
