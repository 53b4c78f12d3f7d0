"""Containers of a pod: the devices that were allocated to them, and those that they see."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from testbed.drivers.missing import missing_devices
from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed, NothingToJudge, UsageError, WaitTimeout
from testbed.kube.client import Object
from testbed.models.driver.probe import Observation
from testbed.process import Completed
from testbed.vocabulary import budgets
from testbed.vocabulary.checked_sets import CheckedSet, NothingToCompare
from testbed.vocabulary.claims import Claim, allocated
from testbed.vocabulary.pods import device_metadata, pod_states
from testbed.vocabulary.pods.device_metadata import Metadata
from testbed.vocabulary.pods.identified_devices import known_devices
from testbed.vocabulary.pods.pod_states import Check
from testbed.vocabulary.pods.probe_answers import Answer, from_count, from_exit_code, from_set
from testbed.vocabulary.pods.probe_command import NOT_STARTED, in_container
from testbed.vocabulary.pods.probe_results import ProbeResult, SeenDevices, Settings
from testbed.vocabulary.world import RESOURCE, World
from testbed.waiting import Budget, NotYet, eventually

# In the background, so that the exec call returns before the container ends.
_END_ITSELF = ("sh", "-c", "(sleep 0.1; kill 1) >/dev/null 2>&1 </dev/null &")
_KEY = secrets.token_bytes(16)  # of this process only, so that values cannot be guessed from their digests
# One line for each variable (line breaks in values are replaced), an empty line, then mount points and device nodes.
_PRINT_VARIABLES = r"tr '\n\0' '\1\n' </proc/self/environ"
_PRINT_ENVIRONMENT = rf"{_PRINT_VARIABLES}; echo; cut -d' ' -f5 /proc/self/mountinfo; find /dev -type c -o -type b"


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
class Container:
    """A container of a pod."""

    pod: PodOfContainer
    name: str

    @property
    def devices(self) -> CheckedSet[Device]:
        """Return the devices of the claims, or of their requests, that the container refers to."""
        spec = self.pod.object["spec"]
        mine = next(
            each for each in (*spec.get("initContainers", ()), *spec["containers"]) if each["name"] == self.name
        )
        claims = self.pod.claims
        refers = mine.get("resources", {}).get("claims", ())
        return CheckedSet(device for each in refers for device in claims[each["name"]].devices_of(each.get("request")))

    @property
    def extended_devices(self) -> CheckedSet[Device]:
        """Return the devices for the container's extended resources."""
        status = self.pod.object.get("status", {}).get("extendedResourceClaimStatus", {})
        claim, mappings = self.pod.extended_claim, status.get("requestMappings", ())
        mine = [each["requestName"] for each in mappings if each["containerName"] == self.name]
        return CheckedSet(device for request in mine if claim for device in claim.devices_of(request))

    @property
    def seen_devices(self) -> SeenDevices:
        """Return the devices that the driver file's probe finds in the running container, whatever its exit code is."""
        return self._seen_through(self.pod.world.driver_file.probe)

    @property
    def reachable_devices(self) -> SeenDevices:
        """Return the devices that the probe for containers without a claim finds in the running container, which may have a claim."""
        return self._seen_through(self.pod.world.driver_file.probe.of_others)

    def _seen_through(self, probe: Observation) -> SeenDevices:
        answer = self._answer(probe.argv, "spec.probe", probe.program)
        return self._found_in(probe, answer.stdout, answer)

    @property
    def _allocated(self) -> frozenset[Device]:
        """Return the container's devices of this driver."""
        return self._own(self.devices | self.extended_devices)

    @property
    def printed_devices(self) -> SeenDevices:
        """Return the devices in the log of a container whose command is the driver file's probe, also after it has ended."""
        printed = self.pod.world.kube.logs(self.pod.namespace, self.pod.name, container=self.name)
        return self._found_in(self.pod.world.driver_file.probe, printed, Completed((), 0, printed, ""))

    @property
    def settings(self) -> Settings:
        """Return the settings (one, other) that the driver file's command finds in the running container."""
        return Settings(f"container {self.name} of pod {self.pod.name}", self.settings_of_devices)

    @property
    def settings_of_devices(self) -> tuple[str, ...]:
        """Return the setting (one, other) of each device in the container that has one, sorted."""
        known = self.pod.world.driver_file.configuration
        command = known.command if known else ()
        answer = (
            self._answer(command, "spec.configuration.command", command[0]) if command else Completed((), 0, "", "")
        )
        printed = (self.pod.name, self.name, answer.stdout)
        result = ProbeResult(*printed, matches="", of_settings=True, code=answer.code, errors=answer.stderr)
        self.pod.world.probe_results.keep(self.pod.namespace, result)
        return known.shown(answer.stdout) if known else ()

    @property
    def environment(self) -> CheckedSet[str]:
        """Return the environment variables without HOSTNAME, the mount points and the device nodes.

        Values of variables are replaced by digests: they may be secrets, and reports show comparisons.
        """
        variables, _, paths = self._output(("sh", "-c", _PRINT_ENVIRONMENT)).partition("\n\n")
        others = [line for line in variables.split("\n") if not line.startswith("HOSTNAME=")]
        return CheckedSet((*map(with_digest, others), *paths.splitlines()))

    def additions_to(self, plain: Container) -> CheckedSet[str]:
        """Return what the environment has and that of a container without claims lacks; NothingToJudge if that is nothing."""
        found = self.environment - plain.environment
        if not found:
            raise NothingToJudge("the claim adds no environment variable, mount or device node to its container")
        return found

    def variables_beside(self, plain: Container) -> list[dict[str, str]]:
        """Return the environment variables that a container without claims lacks, for a manifest; NothingToJudge if there is none.

        Kubernetes expands $ in values, so each is doubled.
        """
        own, others = self._variables(), plain._variables()
        added = {name: value for name, value in own.items() if others.get(name) != value and name != "HOSTNAME"}
        if not added:
            raise NothingToJudge("the claim adds no environment variable to its container")
        return [{"name": name, "value": value.replace("$", "$$")} for name, value in added.items()]

    def _variables(self) -> dict[str, str]:
        lines = self._output(("sh", "-c", _PRINT_VARIABLES)).splitlines()
        return {name: value.replace("\1", "\n") for name, _, value in (line.partition("=") for line in lines)}

    @property
    def environment_names(self) -> CheckedSet[str]:
        """Return the same without the values of variables: a claim may replace values, such as that of PATH."""
        return CheckedSet(line.partition("=")[0] for line in self.environment)

    @property
    def metadata_files(self) -> CheckedSet[str]:
        """Return the device metadata files, relative to the folder that all drivers use."""
        script = f"cd {device_metadata.FOLDER} 2>/dev/null && ls -d */*/*/* || true"
        return CheckedSet(self._output(("sh", "-c", script)).split())

    def metadata(self, request: str) -> Metadata:
        """Return the driver's metadata for a request, such as resourceclaims/my-claim/my-request."""
        name, files = f"{request}/{self.pod.world.driver_file.driver}-metadata.json", self.metadata_files
        if name not in files:
            found = ", ".join(sorted(files)) or "no file"
            raise DriverFailed(
                f"container {self.name} of pod {self.pod.name} has no device metadata file {name}\n  last seen: {found}"
            )
        path = f"{device_metadata.FOLDER}/{name}"
        return device_metadata.read(self._output(("cat", path)), path)

    def should_have_health(self, claim: str, health: str) -> Container:
        """Wait until the pod's status reports this health for every device of a claim; `claim` is its name in the pod's spec."""
        check = pod_states.has_health(self.name, f"claim:{claim}", health)
        self.pod.should(f"report {health} for {claim} in container {self.name}", check, budgets.HEALTH)
        return self

    @property
    def health_messages(self) -> tuple[str, ...]:
        """Return the messages in the health entries of the container."""
        return tuple(each.get("message", "") for each in pod_states.health_of(self.pod.object, self.name))

    @property
    def restarts(self) -> int:
        """Return how often the container was restarted. Raise NothingToCompare if the pod's status does not say it."""
        statuses = self.pod.object.get("status", {}).get("containerStatuses", ())
        counts = [int(each["restartCount"]) for each in statuses if each["name"] == self.name]
        if not counts:
            raise NothingToCompare(f"expected the status of pod {self.pod.name} to have its container {self.name}")
        return counts[0]

    def end(self) -> Container:
        """Send SIGTERM to the container's process, without waiting."""
        self.pod.world.kube.exec(self.pod.namespace, self.pod.name, _END_ITSELF, container=self.name)
        return self

    def restart(self) -> Container:
        """Kill the container's process, and wait until the kubelet has restarted the container."""
        before = self.restarts
        self.end()
        check = pod_states.restarted(self.name, before)
        self.pod.should(f"have its container {self.name} restarted", check, budgets.RESTARTED)
        return self

    def _answer(self, command: Sequence[str], key: str, program: str) -> Completed:
        """Run a command of the driver file and return its answer. Raise UsageError if it could not be started although it has a device.

        In a container without devices this is an answer too: the driver may add the program together with the device. If the driver file
        says that it does (probe.programFromDriver), a missing program shows in every container that there is no device.
        """
        argv, name = in_container(command), self.name
        answer = self.pod.world.kube.exec_unchecked(self.pod.namespace, self.pod.name, argv, container=name)
        is_answer = key == "spec.probe" and self.pod.world.driver_file.probe.program_from_driver
        if answer.code in NOT_STARTED and not is_answer and (self.devices or self.extended_devices):
            shown = (answer.stderr or answer.stdout).strip() or f"exit code {answer.code}"
            raise UsageError(
                f"{program} of {key} could not be started in container {name} of pod {self.pod.name}: {shown}",
                hint=f"the image lacks the program: check {key} of the driver file; if the driver adds it, set programFromDriver",
            )
        return answer

    def _output(self, command: Sequence[str]) -> str:
        return self.pod.world.kube.exec(self.pod.namespace, self.pod.name, list(command), container=self.name)

    def _found_in(self, probe: Observation, text: str, ended: Completed) -> SeenDevices:
        """Return the devices in the output, and keep it for the evidence."""
        result = ProbeResult(self.pod.name, self.name, text, probe.pattern, code=ended.code, errors=ended.stderr)
        probe_results, namespace = self.pod.world.probe_results, self.pod.namespace
        probe_results.keep(namespace, result)
        if probe.shows == "device":
            devices = self._own(device_metadata.devices_in(text))
        elif self._names_devices(probe):
            devices = self._named(probe, text)
        else:
            answer = Answer(frozenset(probe.ids(text)), self._allocated)
            result = replace(result, answer=answer, pod_uid=str(self.pod.object["metadata"]["uid"]))
            devices = self._compared(probe, answer)
        return SeenDevices([probe_results.keep(namespace, replace(result, devices=devices))])

    def _names_devices(self, probe: Observation) -> bool:
        return probe.shows in ("id", "name") or bool(probe.cpuset and self.pod.world.driver_file.identity_attribute)

    def _named(self, probe: Observation, text: str) -> frozenset[Device]:
        """Return the devices that the output names. Wait for their slices, which the driver may publish again, or raise DriverFailed."""
        if probe.cpuset and not self._allocated:
            return self._cpus_of_claims(probe, text)
        expected = f"the devices in container {self.name} of pod {self.pod.name} to be published"
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
        me = (self.pod.name, self.name)
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
                f"container {self.name} of pod {self.pod.name} sees a device {missing[0]}, but no ResourceSlice of "
                f"{world.driver_file.driver} has a device with that {identity}; "
                f"published: {', '.join(sorted(known)) or 'none'}"
            )
        return frozenset(known[each] for each in found)

    def _known(self, probe: Observation, shown: Sequence[str]) -> dict[str, Device]:
        """Return devices by what the probe shows: their names or their identities."""
        claims = [*self.pod.claims.values(), *filter(None, [self.pod.extended_claim])]
        return known_devices(self.pod.world, self.pod.node, claims, shown, by_name=probe.shows_names)


def with_digest(variable: str) -> str:
    """Return the variable with a digest for its value."""
    name, _, value = variable.partition("=")
    return f"{name}={hashlib.blake2b(value.encode(), key=_KEY, digest_size=6).hexdigest()}"
