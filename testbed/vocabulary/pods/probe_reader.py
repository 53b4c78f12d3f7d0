"""Turns the output of a probe into the devices that a container sees, and keeps it for the evidence. Container uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from testbed.drivers.missing import missing_devices
from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed, WaitTimeout
from testbed.kube.client import Object
from testbed.models.driver.probe import Observation
from testbed.process import Completed
from testbed.vocabulary import budgets
from testbed.vocabulary.claims import Claim, allocated
from testbed.vocabulary.pods import device_metadata
from testbed.vocabulary.pods.identified_devices import known_devices
from testbed.vocabulary.pods.pod_states import Check
from testbed.vocabulary.pods.probe_answers import Answer, from_count, from_exit_code, from_set
from testbed.vocabulary.pods.probe_results import ProbeResult, SeenDevices
from testbed.vocabulary.world import RESOURCE, World
from testbed.waiting import Budget, NotYet, eventually


class PodOfContainer(Protocol):
    """What a container needs of its pod; `pod.Pod` implements it."""

    @property
    def world(self) -> World:
        """The cluster with the driver under test."""

    @property
    def namespace(self) -> str:
        """The pod's namespace."""

    @property
    def name(self) -> str:
        """The pod's name."""

    @property
    def object(self) -> Object:
        """The pod's current object."""

    @property
    def node(self) -> str:
        """The node that the pod is bound to, or ''."""

    @property
    def claims(self) -> dict[str, Claim]:
        """The claims by their names in the pod's spec."""

    @property
    def extended_claim(self) -> Claim | None:
        """The claim for the pod's extended resources, or None."""

    def should(self, verb: str, check: Check, budget: Budget) -> PodOfContainer:
        """Wait until a check accepts the pod."""


@dataclass(frozen=True)
class ProbeReader:
    """Reads the output of probes in a container.

    `allocated` returns the container's devices of the driver under test, and `claims` the names of the claims that it refers to.
    """

    pod: PodOfContainer
    container: str
    allocated: Callable[[], frozenset[Device]]
    claims: Callable[[], frozenset[str]]

    def read(self, probe: Observation, text: str, ended: Completed) -> SeenDevices:
        """Return the devices in the output, and keep it for the evidence."""
        result = ProbeResult(self.pod.name, self.container, text, probe.pattern, code=ended.code, errors=ended.stderr)
        probe_results, namespace = self.pod.world.probe_results, self.pod.namespace
        probe_results.keep(namespace, result)
        if probe.shows == "device":
            devices = self._own(device_metadata.devices_in(text))
        elif self._names_devices(probe):
            devices = self._named(probe, text)
        else:
            answer = Answer(frozenset(probe.ids(text)), self.allocated(), self.claims())
            result = replace(result, answer=answer, pod_uid=str(self.pod.object["metadata"]["uid"]))
            devices = self._compared(probe, answer)
        return SeenDevices([probe_results.keep(namespace, replace(result, devices=devices))])

    def _names_devices(self, probe: Observation) -> bool:
        return probe.shows in ("id", "name") or bool(probe.cpuset and self.pod.world.driver_file.identity_attribute)

    def _named(self, probe: Observation, text: str) -> frozenset[Device]:
        """Return the devices that the output names. Wait for their slices, which the driver may publish again, or raise DriverFailed."""
        if probe.cpuset and not self.allocated():
            return self._cpus_of_claims(probe, text)
        expected = f"the devices in container {self.container} of pod {self.pod.name} to be published"
        try:
            return eventually(lambda: self._published(probe, text), expected, budgets.REPUBLISHED)
        except WaitTimeout as late:
            world, node = self.pod.world, self.pod.node
            lacking = [*missing_devices(world.kube, world.driver_file, [node])] if world.slices() else []
            cause = "".join(f"\n  likely cause: {each} any more" for each in lacking)
            raise DriverFailed(f"{late.last_seen}{cause}", hint="" if lacking else self._hint()) from late

    def _cpus_of_claims(self, probe: Observation, text: str) -> frozenset[Device]:
        """Return the CPUs of a container without devices that are allocated in the same test. All pods share those that no claim has.

        Claims of other tests may be allocated and not yet prepared.
        """
        claims = self.pod.world.kube.list(RESOURCE, "ResourceClaim", self.pod.namespace)
        allocated_now = frozenset(device for each in claims for device in allocated(each))
        shown = probe.ids(text)
        known = self._known(probe, shown)
        return frozenset(known[each] for each in shown if each in known) & allocated_now

    def _compared(self, probe: Observation, answer: Answer) -> frozenset[Device]:
        """Return the devices behind an answer that names none, by what containers on the same node show."""
        driver = self.pod.world.driver_file.driver
        if probe.shows == "exit code":
            return from_exit_code(answer, driver)
        return from_count(answer, driver) if probe.shows == "count" else from_set(answer, self._others(probe), driver)

    def _others(self, probe: Observation) -> list[Answer]:
        """Return the answers of other containers that still run on the node."""
        pods = self.pod.world.kube.list("v1", "Pod", self.pod.namespace)
        here = {each["metadata"]["uid"] for each in pods if each["spec"].get("nodeName") == self.pod.node}
        results = self.pod.world.probe_results.of(self.pod.namespace)
        me = (self.pod.name, self.container)
        same_probe = (each for each in results if each.matches == probe.pattern and (each.pod, each.container) != me)
        return [each.answer for each in same_probe if each.answer and each.pod_uid in here]

    def _own(self, devices: frozenset[Device]) -> frozenset[Device]:
        return frozenset(each for each in devices if each.driver == self.pod.world.driver_file.driver)

    def _hint(self) -> str:
        """Return what to check if a container shows a device that is not published."""
        if self.pod.world.slices():
            return "check spec.probe of the driver file, and why the driver does not publish the device"
        every = self.pod.world.kube.list(RESOURCE, "ResourceSlice")
        others = ", ".join(sorted({str(each["spec"]["driver"]) for each in every})) or "none"
        return (
            f"check spec.driver of the driver file: this driver publishes no ResourceSlice; drivers that do: {others}"
        )

    def _published(self, probe: Observation, text: str) -> frozenset[Device]:
        world = self.pod.world
        found = probe.ids(text)
        known = self._known(probe, found)
        missing = sorted(set(found) - set(known))
        if missing:
            identity = "name" if probe.shows_names else world.driver_file.identity_attribute
            raise NotYet(
                f"container {self.container} of pod {self.pod.name} sees a device {missing[0]}, but no ResourceSlice of "
                f"{world.driver_file.driver} has a device with that {identity}; "
                f"published: {', '.join(sorted(known)) or 'none'}"
            )
        return frozenset(known[each] for each in found)

    def _known(self, probe: Observation, shown: Sequence[str]) -> dict[str, Device]:
        """Return devices by what the probe shows: their names or their identities."""
        claims = [*self.pod.claims.values(), *filter(None, [self.pod.extended_claim])]
        return known_devices(self.pod.world, self.pod.node, claims, shown, by_name=probe.shows_names)
