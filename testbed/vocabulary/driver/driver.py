"""The driver under test: what it publishes, what its driver file says about it, and the waits for its slices."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from testbed.drivers.published.identities import identity_of
from testbed.drivers.published.placement import place_of
from testbed.drivers.published.record import PublishedDevice, described
from testbed.drivers.published.slices import Device, Pool, pools, without_other_devices
from testbed.errors import DriverFailed, NothingToJudge, UsageError
from testbed.kube.client import Object
from testbed.models.driver.devices import Examples
from testbed.models.driver_sections import Classes, SharedCapacity
from testbed.models.names import full_name, published_name
from testbed.vocabulary import budgets
from testbed.vocabulary.checked_sets import CheckedSet
from testbed.vocabulary.driver import optional_devices
from testbed.vocabulary.driver.declared_devices import Contradictions, too_few
from testbed.vocabulary.driver.mentions import mentioned
from testbed.vocabulary.driver.optional_devices import CounterGroup, PartitionableDevices, TaintedDevice
from testbed.vocabulary.driver.published_pools import NOT_REPUBLISHED, PublishedPools, found_within
from testbed.vocabulary.driver.published_values import PublishedValue, read_value, with_domains
from testbed.vocabulary.driver.quantities import amount
from testbed.vocabulary.observing.queries import eventually_or_explain
from testbed.vocabulary.pods.identified_devices import by_identity
from testbed.vocabulary.pods.probe_results import named_devices
from testbed.waiting import NotYet, unshortened

T = TypeVar("T")
_IDENTITY = "spec.devices.identity"


@dataclass(frozen=True)
class Driver(PublishedPools):
    """The driver under test."""

    @property
    def device_class(self) -> str:
        """Return the DeviceClass of the driver file."""
        return self.world.driver_file.device_class

    @property
    def companion(self) -> Driver:
        """Return the first companion of the driver file."""
        if not self.world.companions:
            raise UsageError(
                f"driver file {self.world.driver_file.name} names no companions",
                hint="the requirement of this test must have the feature companion",
            )
        return Driver(replace(self.world, driver_file=self.world.companions[0], companions=()))

    @property
    def companion_with_identity(self) -> Driver:
        """Return the first companion; NothingToJudge if its driver file has no identity attribute."""
        found = self.companion
        if not found.world.driver_file.identity_attribute:
            raise NothingToJudge(f"driver file {found.world.driver_file.name} has no {_IDENTITY}")
        return found

    def own(self, devices: Iterable[Device]) -> CheckedSet[Device]:
        """Return those of the devices that belong to this driver."""
        return CheckedSet(device for device in devices if device.driver == self.name)

    @property
    def nodes(self) -> frozenset[str]:
        """Return the nodes where the driver file expects the driver."""
        return self.world.nodes

    @property
    def duplicate_devices(self) -> tuple[Device, ...]:
        """Return the devices that a pool has more than once, sorted; DriverFailed if there is no device."""
        counted = Counter(self._published())
        if not counted:
            raise DriverFailed("the driver publishes no device")
        return tuple(sorted(device for device, times in counted.items() if times > 1))

    @property
    def contradictions(self) -> Contradictions:
        """Return how the published devices differ from what the driver file declares."""
        return Contradictions(self.world.driver_file, self.world.node_labels, self.pools, tuple(self._ordinary))

    @property
    def devices(self) -> CheckedSet[Device]:
        """Return the devices of the DeviceClass on the nodes where the driver is expected, and of the network.

        DriverFailed if there is none.
        """
        found = self._of_the_class_on(*self.nodes, "")
        if not found:
            raise DriverFailed(f"the driver publishes no device of class {self.device_class} where it is expected")
        return found

    def devices_for(self, claims: int) -> int:
        """Return how many devices so many claims have, if each is as small as the driver file allows; NothingToJudge if nodes decide it."""
        shape = self.world.driver_file.devices.claim
        if shape.counts == "all":
            raise NothingToJudge("a claim has all devices of its node (spec.devices.claim.counts)")
        return claims * shape.count

    def devices_on(self, node: str) -> CheckedSet[Device]:
        """Return the devices of the DeviceClass on a node.

        If there is none: NothingToJudge if the driver file declares network-attached devices, otherwise DriverFailed.
        """
        found = self._of_the_class_on(node)
        if not found and not self.world.driver_file.are_devices_local:
            raise NothingToJudge("the driver file declares network-attached devices (spec.devices.belongTo)")
        if not found:
            raise DriverFailed(f"the driver publishes no device of class {self.device_class} for node {node}")
        return found

    def should_publish(self, devices: Iterable[Device], node: str) -> None:
        """Wait until the devices of the DeviceClass on a node are these."""
        wanted = frozenset(devices)

        def published() -> None:
            now = frozenset(self._of_the_class_on(node))
            if now != wanted:
                raise NotYet(f"missing: {named_devices(wanted - now)}; surplus: {named_devices(now - wanted)}")

        expected = f"{self.name} to publish the same devices on {node} again"
        eventually_or_explain(self.world, published, expected, budgets.REPUBLISHED, NOT_REPUBLISHED)

    def namesakes_on(self, node: str, other: str) -> tuple[Device, Device]:
        """Return a device of a node and one of the other node, if possible of the same name."""
        here, there = sorted(self.devices_on(node)), sorted(self.devices_on(other))
        pairs = [(one, another) for one in here for another in there if one.name == another.name]
        return pairs[0] if pairs else (here[0], there[0])

    def published_while_in_use(self, devices: Iterable[Device]) -> CheckedSet[Device]:
        """Return devices that claims use. NothingToJudge if the driver removes one from its slices within the budget STAYS.

        Then no other claim can get it, not even with admin access. SLICE-018 judges that.
        """
        used = CheckedSet(devices)
        absent = found_within(lambda: sorted(used - set(self._published())), unshortened(budgets.STAYS))
        if absent:
            raise NothingToJudge(f"the driver removes devices in use from its slices, such as {absent[0]} (SLICE-018)")
        return used

    def devices_with_value(self, value: PublishedValue, node: str) -> CheckedSet[Device]:
        """Return the devices on a node with this attribute or capacity."""
        return CheckedSet(
            each for each in self.devices_on(node) if self.published_value(each, value.full_name) == value
        )

    def published_value(self, device: Device, attribute: str) -> PublishedValue:
        """Return an attribute or a capacity of a device; a name without domain has the driver's."""
        return read_value(self._description(device), attribute, self.name)

    def attributes(self, device: Device) -> dict[str, Object]:
        """Return the attributes of a device by their full names, with their values as in the ResourceSlice."""
        return with_domains(self._description(device).get("attributes", {}), self.name)

    def common_attributes(self, device: Device, names: Collection[str]) -> dict[str, Object]:
        """Return those of the attributes of a device that have one of these full names; NothingToJudge if none has."""
        found = {name: value for name, value in self.attributes(device).items() if name in names}
        if not found:
            raise NothingToJudge(f"no attribute of {device} is both in its metadata file and in its ResourceSlice")
        return found

    def attribute(self, device: Device, name: str) -> Object:
        """Return the value of an attribute of a device as in the ResourceSlice, or {}."""
        return dict(self._description(device).get("attributes", {}).get(name, {}))

    def identity(self, device: Device) -> PublishedValue:
        """Return the value of the driver file's identity attribute, which no other device has on the node of this one.

        Pods of a manifest that is applied with it run on that node. NothingToJudge if another special device has it too; ordinary
        devices are compared before the run.
        """
        published = self._published_device(device)
        found = replace(read_value(published.description, self._identity_attribute, self.name), node=published.node)
        ordinary = self._of_the_class_on(published.node)
        others = self._sharing_identity(published) - {device, *ordinary}
        if others and device not in frozenset(ordinary):
            raise NothingToJudge(
                f"{device} and {min(others)} have the same {self.world.driver_file.identity_attribute}"
            )
        return found

    def devices_named_in(self, status: object, node: str) -> CheckedSet[Device]:
        """Return the devices that a node can use whose identity occurs anywhere in a status."""
        _ = self._identity_attribute
        usable = (each for each in described(self.world.slices_with_devices_in_use()) if each.is_usable_on(node))
        known = by_identity(usable, self.world.driver_file)
        return CheckedSet(device for each in mentioned(known, str(status)) for device in known[each])

    @property
    def examples(self) -> Examples:
        """Return the example attributes and capacities of the driver file. Constraints need the full name of match_attribute."""
        found = self.world.driver_file.examples
        matching = full_name(found.match_attribute, self.name) if found.match_attribute else ""
        return found.model_copy(update={"match_attribute": matching})

    def tainted(self, effect: str) -> TaintedDevice:
        """Return a device that has a taint with this effect in its slice, on a node where the driver is expected or of the network."""
        reached = {*self.nodes, ""}
        found = ((Device(self.name, *each[:2]), each[3]) for each in self._described() if each[2] in reached)
        return optional_devices.tainted(found, effect)

    def partitionable_on(self, node: str) -> PartitionableDevices:
        """Return the partitionable devices on a node; DriverFailed if the driver file promises others."""
        found = optional_devices.partitionable((pool for pool in self.pools if node in pool.nodes), self.name)
        if broken := self.contradictions.partitions_on(node):
            raise DriverFailed("; ".join(broken), hint="check the shared counters that the driver publishes")
        return found

    @property
    def partitionable_devices(self) -> tuple[CounterGroup, ...]:
        """Return all groups of partitionable devices, including those that consume missing counters."""
        return tuple(each for pool in self.pools for each in optional_devices.counter_groups(pool, self.name))

    def shareable_on(self, node: str, *, at_least: int = 1) -> tuple[Device, ...]:
        """Return the devices on a node that allow multiple allocations, sorted; NothingToJudge if there are fewer than `at_least`."""
        here = ((Device(self.name, *each[:2]), each[3]) for each in self._described() if each[2] == node)
        found = optional_devices.shareable(here)
        if len(found) < min(at_least, self.sharing.per_node):
            few = too_few({node: len(found)}, self.sharing.per_node, "spec.optional.capacity.perNode")
            raise DriverFailed("; ".join(few))
        if len(found) < at_least:
            raise NothingToJudge(
                f"the driver publishes {len(found)} devices on node {node} that allow multiple allocations; {at_least} are needed"
            )
        return found

    def default_share(self, device: Device) -> str:
        """Return how much a claim gets of a shareable device if it does not request an amount."""
        return optional_devices.default_share(self._description(device), self.sharing.capacity, self.name)

    def more_than_any_device_has(self, capacity: str) -> PublishedValue:
        """Return an amount of a capacity that is larger than that of any device of the DeviceClass."""
        published = [read_value(each, capacity, self.name) for *_, each in self._of_the_class()]
        most = max(published, key=lambda each: each.amount)
        return replace(most, literal=f'quantity("{math.floor(most.amount) + 1}")')

    def binding_conditions(self, device: Device) -> list[str]:
        """Return the binding conditions of a device; DriverFailed if it has none."""
        return self._conditions(device, "bindingConditions", "binding conditions")

    def binding_failure_conditions(self, device: Device) -> list[str]:
        """Return the binding failure conditions of a device; DriverFailed if it has none."""
        return self._conditions(device, "bindingFailureConditions", "binding failure conditions")

    def amount_above_limit(self, device: Device) -> str:
        """Return the driver file's amount that exceeds the limit for one claim, but not the capacity of the device."""
        requested, published = self.sharing.too_much, self.published_value(device, self.sharing.capacity)
        if amount(requested) > published.amount:
            raise UsageError(
                f"spec.optional.capacity.tooMuch of the driver file is {requested}, which exceeds the {self.sharing.capacity} of {device}",
                hint="set it to more than one claim may have, but at most the capacity of the device",
            )
        return requested

    def only_pool_on(self, node: str) -> str:
        """Return the pool of all devices on a node; NothingToJudge if they are in several pools."""
        found = sorted({device.pool for device in self.devices_on(node)})
        if len(found) > 1:
            raise NothingToJudge(f"the devices of the driver on node {node} are in {len(found)} pools")
        return found[0]

    @property
    def classes(self) -> Classes:
        """Return the driver file's DeviceClasses for optional parts of DRA."""
        return self.world.driver_file.classes

    @property
    def sharing(self) -> SharedCapacity:
        """Return spec.optional.capacity of the driver file. Requests have to spell the capacity as slices do."""
        found = self.world.driver_file.sharing
        if found is None:
            raise UsageError("the driver file has no spec.optional.capacity", hint="add it")
        shareable = (each for *_, each in self._described() if each.get("allowMultipleAllocations"))
        names = [published_name(found.capacity, each.get("capacity") or {}, self.name) for each in shareable]
        return found.model_copy(update={"capacity": next(filter(None, names), found.capacity)})

    @property
    def invalid_field(self) -> str:
        """Return the invalid field in the driver file's invalid configuration."""
        known = self.world.driver_file.configuration
        return known.invalid.field if known and known.invalid else ""

    def effective_setting(self, *settings: str) -> frozenset[str]:
        """Return the one of contradictory settings that spec.configuration.precedence declares, given in the order of an allocation."""
        known = self.world.driver_file.configuration
        if not known or known.precedence not in ("claim", "class"):
            raise UsageError(
                f"driver file {self.world.driver_file.name} declares no precedence",
                hint="a requirement says features=configuration-precedence, and the driver file spec.configuration.precedence",
            )
        return frozenset(settings[-1:] if known.precedence == "claim" else settings[:1])

    @property
    def _identity_attribute(self) -> str:
        if not self.world.driver_file.identity_attribute:
            raise UsageError(
                f"driver file {self.world.driver_file.name} has no {_IDENTITY}",
                hint="the requirement of this test must have the feature identity",
            )
        return self.world.driver_file.identity_attribute

    def _of_the_class_on(self, *nodes: str) -> CheckedSet[Device]:
        return CheckedSet(Device(self.name, *each[:2]) for each in self._of_the_class() if each[2] in nodes)

    @property
    def _ordinary(self) -> list[Pool]:
        others = self.world.driver_file.other_devices
        slices = self.world.slices_with_devices_in_use()
        return pools(without_other_devices(slices, others, self.name), self.name)

    def _of_the_class(self) -> Iterator[tuple[str, str, str, Object]]:
        return _described(self._ordinary)

    def _described(self) -> Iterator[tuple[str, str, str, Object]]:
        return _described(pools(self.world.slices_with_devices_in_use(), self.name))

    def _conditions(self, device: Device, field: str, what: str) -> list[str]:
        found = list(self._description(device).get(field) or ())
        if not found:
            raise DriverFailed(f"device {device} has no {what}")
        return found

    def _description(self, device: Device) -> Object:
        return self._published_device(device).description

    def _published_device(self, device: Device) -> PublishedDevice:
        """Return a device as slices describe it, or last described it: the driver may remove it while a claim uses it."""
        self.world.slices()
        found = self.world.record.newest.get(device)
        if not found:
            raise DriverFailed(f"{self.name} publishes no device {device}")
        return found

    def _sharing_identity(self, device: PublishedDevice) -> frozenset[Device]:
        """Return the devices that the node of a device can use and that have the same identity, with the device itself."""
        usable = (each for each in described(self.world.slices()) if each.is_usable_on(device.node))
        file = self.world.driver_file
        return frozenset(
            each.device
            for each in usable
            if identity_of(each.description, file) == identity_of(device.description, file)
        )

    def _published(self) -> Iterator[Device]:
        return (Device(self.name, *each[:2]) for each in _described(self.pools))


def _described(found: Iterable[Pool]) -> Iterator[tuple[str, str, str, Object]]:
    """Yield pool, name, node and description of each device."""
    for pool in found:
        for each in pool.slices:
            for device in each["spec"].get("devices") or ():
                yield pool.name, device["name"], place_of(each["spec"], device).get("nodeName", ""), device
