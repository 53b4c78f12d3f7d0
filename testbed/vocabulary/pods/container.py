"""Containers of a pod: the devices that were allocated to them, and those that they see."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed, NothingToJudge, UsageError
from testbed.kube.client import Object
from testbed.models.driver.probe import Observation
from testbed.process import Completed
from testbed.vocabulary import budgets
from testbed.vocabulary.checked_sets import CheckedSet, NothingToCompare
from testbed.vocabulary.claims import Claim
from testbed.vocabulary.pods import device_metadata, pod_states
from testbed.vocabulary.pods.device_metadata import Metadata
from testbed.vocabulary.pods.probe_command import NOT_STARTED, in_container
from testbed.vocabulary.pods.probe_reader import PodOfContainer, ProbeReader
from testbed.vocabulary.pods.probe_results import ProbeResult, SeenDevices, Settings

# In the background, so that the exec call returns before the container ends.
_END_ITSELF = ("sh", "-c", "(sleep 0.1; kill 1) >/dev/null 2>&1 </dev/null &")
_KEY = secrets.token_bytes(16)  # of this process only, so that values cannot be guessed from their digests
# One line for each variable (line breaks in values are replaced), an empty line, then mount points and device nodes.
# A shell replaces itself by its last command, whose /proc/self/environ then cannot be read any more. So `echo` is the last one.
_PRINT_VARIABLES = r"tr '\n\0' '\1\n' </proc/self/environ; echo"
_PRINT_ENVIRONMENT = rf"{_PRINT_VARIABLES}; cut -d' ' -f5 /proc/self/mountinfo; find /dev -type c -o -type b"


@dataclass(frozen=True)
class Container:
    """A container of a pod."""

    pod: PodOfContainer
    name: str

    @property
    def devices(self) -> CheckedSet[Device]:
        """Return the devices of the claims, or of their requests, that the container refers to."""
        claims = self.pod.claims
        return CheckedSet(d for each in self._references for d in claims[each["name"]].devices_of(each.get("request")))

    @property
    def _references(self) -> list[Object]:
        """Return the entries of the container's resources.claims."""
        spec = self.pod.object["spec"]
        every = (*spec.get("initContainers", ()), *spec["containers"])
        mine = next(each for each in every if each["name"] == self.name)
        return [*mine.get("resources", {}).get("claims", ())]

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
        """Return the devices that the probe for containers without a claim finds in the running container, which may have a claim.

        Raise NothingToJudge if `probe.without` shows nothing of a claim in its own container: then it proves nothing about others.
        """
        probe = self.pod.world.driver_file.probe
        found = self._seen_through(probe.of_others)
        if probe.without and not found and self._allocated:
            raise NothingToJudge(
                f"spec.probe.without shows no device in container {self.name} of pod {self.pod.name}, which has one: "
                "it cannot show that other containers have none"
            )
        return found

    def _seen_through(self, probe: Observation) -> SeenDevices:
        answer = self._answer(probe.argv, "spec.probe", probe.program)
        return self._found_in(probe, answer.stdout, answer)

    @property
    def _claim_names(self) -> list[str]:
        return [each.name for each in self._claims]

    @property
    def _claims(self) -> list[Claim]:
        """Return the claims that the container refers to; for extended resources that is the pod's one claim."""
        claims, extended = self.pod.claims, self.pod.extended_claim
        referred = [claims[each["name"]] for each in self._references]
        return referred + ([extended] if extended and self.extended_devices else [])

    @property
    def _allocated(self) -> frozenset[Device]:
        """Return the container's devices of this driver."""
        every = self.devices | self.extended_devices
        return frozenset(each for each in every if each.driver == self.pod.world.driver_file.driver)

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

    def variables_beside(self, plain: Container, *, of_unknown_claim: bool = False) -> list[dict[str, str]]:
        """Return the environment variables that a container without claims lacks, for a manifest; NothingToJudge if there is none.

        With `of_unknown_claim`, the UID of each claim is replaced by one that no claim has. Kubernetes expands $ in values, so each
        is doubled.
        """
        own, others = self._variables(), plain._variables()
        added = {name: value for name, value in own.items() if others.get(name) != value and name != "HOSTNAME"}
        if not added:
            raise NothingToJudge("the claim adds no environment variable to its container")
        variables = [{"name": name, "value": value.replace("$", "$$")} for name, value in added.items()]
        for each in self._claims if of_unknown_claim else ():
            variables = with_uid(variables, each.uid, str(uuid.uuid4()))
        return variables

    def _variables(self) -> dict[str, str]:
        lines = self._output(("sh", "-c", _PRINT_VARIABLES)).splitlines()
        return {name: value.replace("\1", "\n") for name, _, value in (line.partition("=") for line in lines if line)}

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
        reader = ProbeReader(self.pod, self.name, lambda: self._allocated, lambda: frozenset(self._claim_names))
        return reader.read(probe, text, ended)


def with_uid(variables: list[dict[str, str]], old: str, new: str) -> list[dict[str, str]]:
    """Return the variables with another UID in names and values, which may be in upper case, with underscores, or without hyphens."""
    return [{key: _with_uid(text, old, new) for key, text in each.items()} for each in variables]


def _with_uid(text: str, old: str, new: str) -> str:
    for hyphen in ("-", "_", ""):
        one, other = old.replace("-", hyphen), new.replace("-", hyphen)
        text = text.replace(one, other).replace(one.upper(), other.upper())
    return text


def with_digest(variable: str) -> str:
    """Return the variable with a digest for its value."""
    name, _, value = variable.partition("=")
    return f"{name}={hashlib.blake2b(value.encode(), key=_KEY, digest_size=6).hexdigest()}"
