"""The word `driver`: the driver under test as it shows itself in the cluster."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from testbed.drivers import expected_nodes
from testbed.drivers.published.slices import Device, Pool, devices_by_attribute, pools, without_other_devices
from testbed.errors import DriverFailed, NothingToJudge, UsageError, WaitTimeout
from testbed.kube.client import Object
from testbed.models.driver_sections import Classes, Examples, Sharing
from testbed.vocabulary import budgets
from testbed.vocabulary.driver import optional_devices, slice_facts
from testbed.vocabulary.driver.optional_devices import CounterGroup, PartitionableDevices, TaintedDevice
from testbed.vocabulary.driver.pool_changes import PoolWatch
from testbed.vocabulary.driver.published_values import PublishedValue, saying, with_domains
from testbed.vocabulary.driver.quantities import amount
from testbed.vocabulary.observing import queries
from testbed.vocabulary.observing.observation import Diagnosis, failure
from testbed.vocabulary.world import RESOURCE, World
from testbed.waiting import NotYet, eventually, eventually_true

T = TypeVar("T")
_NOT_WIPED = Diagnosis(
    "a kubelet deletes the slices of a driver that it does not reach any more: is a process of it left there, or another kubelet plugin?"
)
_NOT_REPAIRED = Diagnosis(
    "every kubelet that starts deletes all slices of its node; only their driver can bring them back"
)


@dataclass(frozen=True)
class Driver:
    """The driver under test."""

    world: World

    @property
    def name(self) -> str:
        """Its name in Kubernetes."""
        return self.world.driver_file.driver

    @property
    def device_class(self) -> str:
        """The DeviceClass by which users ask for its devices."""
        return self.world.driver_file.device_class

    @property
    def companion(self) -> Driver:
        """The first of the drivers beside it."""
        if not self.world.companions:
            raise UsageError(
                f"driver file {self.world.driver_file.name} names no companions",
                hint="a requirement says features=companion",
            )
        return Driver(replace(self.world, driver_file=self.world.companions[0], companions=()))

    @property
    def companion_with_identity(self) -> Driver:
        """The first of the drivers beside it, where its devices can be told apart."""
        found = self.companion
        if not found.world.driver_file.probe.identity_attribute:
            raise NothingToJudge(
                f"driver file {found.world.driver_file.name} names no attribute that tells devices apart"
            )
        return found

    def own(self, devices: Iterable[Device]) -> frozenset[Device]:
        """Those of them that are this driver's."""
        return frozenset(device for device in devices if device.driver == self.name)

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes where its driver file expects it."""
        return expected_nodes(self.world.kube, self.world.driver_file)

    @property
    def pools(self) -> tuple[Pool, ...]:
        """Its pools, in their newest generations, sorted by name."""
        return tuple(pools(self.world.slices(), self.name))

    @property
    def incomplete_pools(self) -> tuple[Pool, ...]:
        """The pools that stay incomplete: one that is just being written anew gets the time for it."""
        return _lasting(lambda: tuple(pool for pool in self.pools if not pool.complete))

    @property
    def inconsistent_pools(self) -> tuple[str, ...]:
        """The pools whose slices contradict each other for good, and how."""
        return _lasting(lambda: slice_facts.contradictions(self.world.slices()))

    @property
    def ownerless_slices(self) -> tuple[str, ...]:
        """Its slices that name a node, and would stay if that node went."""
        slices = self.world.slices()  # first: a node that is there by now has its UID
        nodes = {each["metadata"]["name"]: each["metadata"]["uid"] for each in self.world.kube.list("v1", "Node")}
        return slice_facts.ownerless(slices, nodes)

    @property
    def duplicate_devices(self) -> tuple[Device, ...]:
        """The devices that a pool has more than once, sorted."""
        counted = Counter(self._published())
        if not counted:
            raise DriverFailed("the driver publishes no device")
        return tuple(sorted(device for device, times in counted.items() if times > 1))

    @property
    def devices(self) -> frozenset[Device]:
        """Every device of its DeviceClass where ordinary pods run: on the nodes where it is expected, and of the network.

        There is at least one: a driver without any has failed.
        """
        found = self._of_the_class_on(*self.nodes, "")
        if not found:
            raise DriverFailed(f"the driver publishes no device of class {self.device_class} where it is expected")
        return found

    def devices_on(self, node: str) -> frozenset[Device]:
        """The devices of its DeviceClass that it publishes for one node; at least one."""
        found = self._of_the_class_on(node)
        if not found and self._of_the_class_on(""):
            raise NothingToJudge(f"the driver publishes no device for node {node}, only some that belong to no node")
        if not found:
            raise DriverFailed(f"the driver publishes no device of class {self.device_class} for node {node}")
        return found

    def slices_on(self, node: str) -> frozenset[str]:
        """The UIDs of the slices that it publishes for one node: a slice that was made again has another one."""
        return frozenset(str(each["metadata"]["uid"]) for each in self.world.slices() if _node(each) == node)

    def slices_not_on(self, node: str) -> frozenset[str]:
        """The UIDs of the slices that it publishes for other nodes."""
        return frozenset(str(each["metadata"]["uid"]) for each in self.world.slices() if _node(each) not in ("", node))

    def watch_pools(self, node: str) -> PoolWatch:
        """What schedulers see, from now on, of its pools on a node."""
        version, slices = self.world.kube.version(RESOURCE, "ResourceSlice"), tuple(self.world.slices())
        here = tuple(pool.name for pool in pools(slices, self.name) if node in pool.nodes)
        return PoolWatch(self.world, here, slices, version)

    def should_lose_slices(self, slices: frozenset[str], node: str) -> Driver:
        """Wait until none of these slices, which it published for a node, is there any more."""

        def gone() -> None:
            if left := slices & self.slices_on(node):
                raise NotYet(f"{len(left)} of them are there")

        expected = f"the slices of {self.name} for {node} to be deleted"
        try:
            eventually(gone, expected, budgets.SLICES_DELETED)
        except WaitTimeout as late:
            raise failure(
                expected, late.last_seen, late.budget, queries.unless_node_is_away(self.world, _NOT_WIPED)
            ) from late
        return self

    def should_replace_slices(self, slices: frozenset[str], node: str) -> Driver:
        """Wait until it has made other slices for a node, and its pool there is complete."""

        def published() -> None:
            left = slices & self.slices_on(node)
            complete = [pool for pool in self.pools if pool.complete and node in pool.nodes]
            if left or not complete:
                raise NotYet(f"{len(left)} of the old slices are there, and {'a' if complete else 'no'} complete pool")

        expected = f"{self.name} to publish its devices on {node} again"
        try:
            eventually(published, expected, budgets.REPUBLISHED, longest_pause=0.1)
        except WaitTimeout as late:
            raise failure(
                expected, late.last_seen, late.budget, queries.unless_node_is_away(self.world, _NOT_REPAIRED)
            ) from late
        return self

    def devices_with_value(self, saying: PublishedValue, node: str) -> frozenset[Device]:
        """The devices on a node of which the same is published."""
        return frozenset(
            each for each in self.devices_on(node) if self.published_value(each, saying.full_name) == saying
        )

    def published_value(self, device: Device, attribute: str) -> PublishedValue:
        """What it publishes about a device under that name; no domain means its own."""
        return saying(self._description(device), attribute, self.name)

    def attributes(self, device: Device) -> dict[str, Object]:
        """The attributes that it publishes of a device, by their full names, as they stand in the ResourceSlice."""
        return with_domains(self._description(device).get("attributes", {}), self.name)

    def attribute(self, device: Device, name: str) -> Object:
        """What it publishes of an attribute of a device, as it stands in the ResourceSlice."""
        return dict(self._description(device).get("attributes", {}).get(name, {}))

    def identity(self, device: Device) -> PublishedValue:
        """What it publishes about a device that no other device has; the driver file says which attribute that is."""
        return self.published_value(device, self._identity_attribute)

    def devices_named_in(self, said: object) -> frozenset[Device]:
        """The devices of which the identity occurs in something that was said, whatever its form."""
        words = set(re.findall(r"[^\s\"'{}\[\],]+", str(said)))
        known = devices_by_attribute(self.world.slices(), self.name, self._identity_attribute)
        return frozenset(device for value, device in known.items() if value in words)

    @property
    def examples(self) -> Examples:
        """What may be asked of its devices, as the driver file says it."""
        return self.world.driver_file.examples

    def tainted(self, effect: str) -> TaintedDevice:
        """A device that it has tainted itself, where ordinary pods run."""
        reached = {*self.nodes, ""}
        described = ((Device(self.name, *each[:2]), each[3]) for each in self._described() if each[2] in reached)
        return optional_devices.tainted(described, effect)

    def partitionable_on(self, node: str) -> PartitionableDevices:
        """The devices on a node that can be had whole or in parts."""
        return optional_devices.partitionable((pool for pool in self.pools if node in pool.nodes), self.name)

    @property
    def partitionable_devices(self) -> tuple[CounterGroup, ...]:
        """All its devices that can be had whole or in parts, and those that draw from counters which nobody publishes."""
        return tuple(each for pool in self.pools for each in optional_devices.counter_groups(pool, self.name))

    def shareable_on(self, node: str, *, at_least: int = 1) -> tuple[Device, ...]:
        """The devices on a node that several claims may share, sorted. A test for more than there are has nothing to judge."""
        described = ((Device(self.name, *each[:2]), each[3]) for each in self._described() if each[2] == node)
        found = optional_devices.shared(described)
        if len(found) < at_least:
            raise NothingToJudge(
                f"several claims may share {len(found)} device on node {node}, and {at_least} are needed"
            )
        return found

    def default_share(self, device: Device) -> str:
        """What a claim gets of a shared device when it does not say how much."""
        return optional_devices.default_share(self._description(device), self.sharing.capacity.rpartition("/")[2])

    def more_than_any_device_has(self, capacity: str) -> PublishedValue:
        """More of a capacity than any device of its class has, in the form in which it says how much one has."""
        said = [saying(described, capacity, self.name) for *_, described in self._of_the_class()]
        most = max(said, key=lambda each: each.amount)
        return replace(most, literal=f'quantity("{math.floor(most.amount) + 1}")')

    def binding_conditions(self, device: Device) -> list[str]:
        """What it publishes that has to be true before a pod may have the device; there is something."""
        return self._conditions(device, "bindingConditions", "binding conditions")

    def binding_failure_conditions(self, device: Device) -> list[str]:
        """What it publishes that means that no pod can have the device for now; there is something."""
        return self._conditions(device, "bindingFailureConditions", "conditions for a failure")

    def amount_above_limit(self, device: Device) -> str:
        """More than one claim may have of a device, although the device has as much, as the driver file says."""
        asked, there = self.sharing.too_much, self.published_value(device, self.sharing.capacity).amount
        if amount(asked) > there:
            raise UsageError(
                f"no claim can have {asked} of {device}, which has less {self.sharing.capacity} itself",
                hint="look at spec.sharing.tooMuch of the driver file",
            )
        return asked

    def only_pool_on(self, node: str) -> str:
        """The pool of all its devices on a node. Where they are in several there is nothing to judge."""
        found = sorted({device.pool for device in self.devices_on(node)})
        if len(found) > 1:
            raise NothingToJudge(f"the devices of the driver on node {node} are in {len(found)} pools")
        return found[0]

    @property
    def classes(self) -> Classes:
        """Its classes for optional parts of DRA."""
        return self.world.driver_file.classes

    @property
    def sharing(self) -> Sharing:
        """What claims that share a device may ask for."""
        found = self.world.driver_file.sharing
        if found is None:
            raise UsageError("the driver file says nothing of sharing", hint="add spec.sharing to it")
        return found

    @property
    def invalid_field(self) -> str:
        """Where the mistake is in the configuration that the driver file calls invalid."""
        known = self.world.driver_file.configuration
        return known.invalid.field if known else ""

    @property
    def _identity_attribute(self) -> str:
        found = self.world.driver_file.probe.identity_attribute
        if not found:
            raise UsageError(
                f"driver file {self.world.driver_file.name} names no attribute that tells devices apart",
                hint="a requirement says features=identity, and the driver file spec.probe.identityAttribute",
            )
        return found

    def _of_the_class_on(self, *nodes: str) -> frozenset[Device]:
        return frozenset(Device(self.name, *each[:2]) for each in self._of_the_class() if each[2] in nodes)

    def _of_the_class(self) -> Iterator[tuple[str, str, str, Object]]:
        others = self.world.driver_file.other_devices
        return _described(pools(without_other_devices(self.world.slices(), others, self.name), self.name))

    def _described(self) -> Iterator[tuple[str, str, str, Object]]:
        return _described(self.pools)

    def _conditions(self, device: Device, field: str, what: str) -> list[str]:
        found = list(self._description(device).get(field) or ())
        if not found:
            raise DriverFailed(f"device {device} has no {what}")
        return found

    def _description(self, device: Device) -> Object:
        for pool, name, _, described in self._described():
            if (pool, name) == (device.pool, device.name):
                return described
        raise DriverFailed(f"{self.name} publishes no device {device}")

    def _published(self) -> Iterator[Device]:
        return (Device(self.name, *each[:2]) for each in self._described())


def _lasting(look: Callable[[], tuple[T, ...]]) -> tuple[T, ...]:
    """What is wrong with the pools and stays so: one that is just being written anew gets the time for it."""
    wrong: tuple[T, ...] = ()

    def is_right() -> bool:
        nonlocal wrong
        wrong = look()
        return not wrong

    eventually_true(is_right, budgets.POOL)
    return wrong


def _described(found: Iterable[Pool]) -> Iterator[tuple[str, str, str, Object]]:
    """Pool, name, node and description of each device."""
    for pool in found:
        for each in pool.slices:
            for device in each["spec"].get("devices") or ():
                yield pool.name, device["name"], each["spec"].get("nodeName", ""), device


def _node(slice_: Object) -> str:
    return str(slice_["spec"].get("nodeName", ""))
