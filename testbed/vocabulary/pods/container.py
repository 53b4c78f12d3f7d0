"""The word `container`: the devices that a container of a pod was given, and those that it really sees."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from testbed.drivers.published.slices import Device, devices_by_attribute, devices_by_name
from testbed.errors import DriverFailed, WaitTimeout
from testbed.vocabulary import budgets
from testbed.vocabulary.pods import device_metadata, pod_states
from testbed.vocabulary.pods.device_metadata import Metadata
from testbed.vocabulary.pods.probe_results import ProbeResult, SeenDevices, Settings
from testbed.vocabulary.world import RESOURCE
from testbed.waiting import NotYet, eventually

if TYPE_CHECKING:
    from testbed.vocabulary.pods.pod import Pod

# In the background, so that the answer still comes when the container's end takes the program with it.
_END_ITSELF = ("sh", "-c", "(sleep 0.1; kill 1) >/dev/null 2>&1 </dev/null &")
_KEY = secrets.token_bytes(16)  # of this process alone, so that nobody guesses a value from what is told
# Variables in a line each, also those whose values have several; then an empty line, and places.
_LOOK_AROUND = (
    r"tr '\n\0' '\1\n' </proc/self/environ; echo; cut -d' ' -f5 /proc/self/mountinfo; find /dev -type c -o -type b"
)


@dataclass(frozen=True)
class Container:
    """A container of a pod."""

    pod: Pod
    name: str

    @property
    def devices(self) -> frozenset[Device]:
        """The devices of the claims, or of the single requests in them, that it refers to."""
        spec = self.pod.object["spec"]
        mine = next(
            each for each in (*spec.get("initContainers", ()), *spec["containers"]) if each["name"] == self.name
        )
        claims = self.pod.claims
        refers = mine.get("resources", {}).get("claims", ())
        return frozenset(device for each in refers for device in claims[each["name"]].devices_of(each.get("request")))

    @property
    def extended_devices(self) -> frozenset[Device]:
        """The devices that it asked for as extended resources."""
        made = self.pod.object.get("status", {}).get("extendedResourceClaimStatus", {})
        claim = self.pod.extended_claim
        mine = [each["requestName"] for each in made.get("requestMappings", ()) if each["containerName"] == self.name]
        return frozenset(device for request in mine if claim for device in claim.devices_of(request))

    @property
    def seen_devices(self) -> SeenDevices:
        """The devices that it sees, as its driver file says how to look. Asks the container itself, not Kubernetes."""
        return self._found_in(self._said(self.pod.world.driver_file.probe.command))

    @property
    def printed_devices(self) -> SeenDevices:
        """The devices that it printed, where its command is the driver file's probe. For containers that have ended."""
        return self._found_in(self.pod.world.kube.logs(self.pod.namespace, self.pod.name, container=self.name))

    @property
    def settings(self) -> Settings:
        """The settings (one, other) that it shows its device to have, as its driver file says how to look."""
        known = self.pod.world.driver_file.configuration
        printed = self._said(known.command) if known else ""
        self.pod.world.probe_results.keep(
            self.pod.namespace, ProbeResult(self.pod.name, self.name, printed, matches="", of_settings=True)
        )
        found = known.shown(printed) if known else ()
        return Settings(f"container {self.name} of pod {self.pod.name}", found)

    @property
    def environment(self) -> frozenset[str]:
        """All that it has around it: variables, mounted places and device nodes. Its own name is left out.

        A variable's value is only told from others: it may be a secret, and what a comparison finds stands in reports.
        """
        variables, _, places = self._said(("sh", "-c", _LOOK_AROUND)).partition("\n\n")
        others = [line for line in variables.split("\n") if not line.startswith("HOSTNAME=")]
        return frozenset(map(_veiled, others)) | frozenset(places.splitlines())

    @property
    def environment_names(self) -> frozenset[str]:
        """The same without the values of variables, which what a claim adds may replace: PATH, for one."""
        return frozenset(line.partition("=")[0] for line in self.environment)

    @property
    def metadata_files(self) -> frozenset[str]:
        """The files with metadata of its devices, as seen from the folder where all drivers put them."""
        look = f"cd {device_metadata.FOLDER} 2>/dev/null && ls -d */*/*/* || true"
        found = self._said(("sh", "-c", look))
        return frozenset(found.split())

    def metadata(self, request: str) -> Metadata:
        """What the driver under test says in the file for a request, such as resourceclaims/my-claim/my-request."""
        name = f"{request}/{self.pod.world.driver_file.driver}-metadata.json"
        if name not in self.metadata_files:
            there = ", ".join(sorted(self.metadata_files)) or "no file at all"
            raise DriverFailed(f"container {self.name} of pod {self.pod.name} has no {name}; it has {there}")
        path = f"{device_metadata.FOLDER}/{name}"
        text = self._said(("cat", path))
        return device_metadata.read(text, path)

    def should_have_health(self, claim: str, health: str) -> Container:
        """Wait until the pod's status says so of every device of a claim, by the name that the pod has for it."""
        check = pod_states.has_health(self.name, f"claim:{claim}", health)
        self.pod.should(f"say {health} of {claim} in container {self.name}", check, budgets.HEALTH)
        return self

    @property
    def health_messages(self) -> tuple[str, ...]:
        """What is said of the health of its devices, for people."""
        return tuple(each.get("message", "") for each in pod_states.health_of(self.pod.object, self.name))

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        statuses = self.pod.object.get("status", {}).get("containerStatuses", ())
        return next((int(each["restartCount"]) for each in statuses if each["name"] == self.name), 0)

    def restart(self) -> Container:
        """Let its process end, and wait until the kubelet has started it again."""
        before = self.restarts
        self.pod.world.kube.exec(self.pod.namespace, self.pod.name, _END_ITSELF, container=self.name)
        check = pod_states.restarted(self.name, before)
        self.pod.should(f"run again in container {self.name}", check, budgets.RESTARTED)
        return self

    def _said(self, command: Sequence[str]) -> str:
        return self.pod.world.kube.exec(self.pod.namespace, self.pod.name, list(command), container=self.name)

    def _found_in(self, text: str) -> SeenDevices:
        """A pool may just be written anew; what nobody publishes at last is told."""
        look = ProbeResult(self.pod.name, self.name, text, self.pod.world.driver_file.probe.matches)
        probe_results, namespace = self.pod.world.probe_results, self.pod.namespace
        probe_results.keep(namespace, look)
        expected = f"all that container {self.name} of pod {self.pod.name} sees to be published"
        try:
            devices = eventually(lambda: self._published(text), expected, budgets.REPUBLISHED)
            return SeenDevices([probe_results.keep(namespace, replace(look, devices=devices))])
        except WaitTimeout as late:
            raise DriverFailed(late.last_seen, hint=self._hint()) from late

    def _hint(self) -> str:
        """What to look at where a container shows what is not published."""
        if self.pod.world.slices():
            return "look at spec.probe of the driver file, or why the driver does not publish it"
        every = self.pod.world.kube.list(RESOURCE, "ResourceSlice")
        others = ", ".join(sorted({str(each["spec"]["driver"]) for each in every})) or "nobody"
        return f"is spec.driver of the driver file right? The driver publishes nothing at all; {others} does"

    def _published(self, text: str) -> frozenset[Device]:
        world, probe = self.pod.world, self.pod.world.driver_file.probe
        found = probe.ids(text)
        known = self._known(found)
        missing = sorted(set(found) - set(known))
        if missing:
            raise NotYet(
                f"container {self.name} of pod {self.pod.name} sees a device {missing[0]}, but no ResourceSlice of "
                f"{world.driver_file.driver} has a device with that {'name' if probe.shows_names else probe.identity_attribute}; "
                f"known are {', '.join(sorted(known)) or 'none'}"
            )
        return frozenset(known[each] for each in found)

    def _known(self, shown: Sequence[str]) -> dict[str, Device]:
        """The published devices, by what a container shows of them."""
        world, driver, probe = self.pod.world, self.pod.world.driver_file.driver, self.pod.world.driver_file.probe
        if probe.shows_names:
            return devices_by_name(world.slices(), driver, self.pod.node, shown)
        return devices_by_attribute(world.slices(), driver, probe.identity_attribute)


def _veiled(variable: str) -> str:
    """Its name, and by what its value is told from others."""
    name, _, value = variable.partition("=")
    return f"{name}={hashlib.blake2b(value.encode(), key=_KEY, digest_size=6).hexdigest()}"
