"""The words `pod` and `container`: run, succeed, the devices that a pod was given, and the devices that a container really sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from testbed.drivers.slices import Device, identities
from testbed.errors import DriverFailed
from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.claims import Claim
from testbed.vocabulary.diagnosis import diagnose, in_order, tell
from testbed.vocabulary.observing import Diagnosis, NeverComes, Target, observe
from testbed.vocabulary.world import World
from testbed.waiting import Budget, NotYet


@dataclass(frozen=True)
class Pod:
    """A pod of the scenario."""

    world: World
    namespace: str
    name: str

    @property
    def object(self) -> Object:
        """The pod as it is now."""
        return self.world.kube.get("v1", "Pod", self.name, self.namespace)

    @property
    def node(self) -> str:
        """The node that it is on; '' as long as there is none."""
        return str(self.object["spec"].get("nodeName", ""))

    @property
    def events(self) -> list[Object]:
        """What Kubernetes says about it, the newest last."""
        selector = f"involvedObject.kind=Pod,involvedObject.name={self.name}"
        return in_order(self.world.kube.list("v1", "Event", self.namespace, fieldSelector=selector))

    @property
    def claims(self) -> dict[str, Claim]:
        """Its claims, by the names that the pod has for them."""
        pod = self.object
        made = {
            each["name"]: each.get("resourceClaimName")
            for each in pod.get("status", {}).get("resourceClaimStatuses", ())
        }
        named = {
            each["name"]: each.get("resourceClaimName") or made.get(each["name"])
            for each in pod["spec"].get("resourceClaims", ())
        }
        return {name: Claim(self.world, self.namespace, claim) for name, claim in named.items() if claim}

    @property
    def devices(self) -> frozenset[Device]:
        """The devices of all its claims."""
        return frozenset(device for claim in self.claims.values() for device in claim.devices)

    @property
    def seen_devices(self) -> frozenset[Device]:
        """The devices that its containers see. Asks the containers themselves, not Kubernetes."""
        names = [each["name"] for each in self.object["spec"]["containers"]]
        return frozenset(device for each in self.containers(*names) for device in each.seen_devices)

    def container(self, name: str) -> Container:
        """One of its containers."""
        return Container(self, name)

    def containers(self, *names: str) -> tuple[Container, ...]:
        """Some of its containers, in this order."""
        return tuple(self.container(name) for name in names)

    def should_run(self) -> Pod:
        """Wait until all its containers run."""
        return self._should("run", _running, budgets.RUN)

    def should_succeed(self) -> Pod:
        """Wait until all its containers have ended with 0."""
        return self._should("succeed", _succeeded, budgets.SUCCEED)

    def _should(self, verb: str, check: Callable[[Object], None], budget: Budget) -> Pod:
        target = Target("v1", "Pod", self.namespace, self.name)
        told = _Told(self, check)
        observe(self.world.kube, target, told.check, f"{target} to {verb}", budget, told.diagnosis)
        return self


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
    def seen_devices(self) -> frozenset[Device]:
        """The devices that it sees, as its driver file says how to look. Asks the container itself, not Kubernetes."""
        world, probe = self.pod.world, self.pod.world.driver_file.probe
        said = world.kube.exec(self.pod.namespace, self.pod.name, list(probe.command), container=self.name)
        known = identities(world.slices(), world.driver_file.driver, probe.identity_attribute)
        return frozenset(self._device(found, known) for found in probe.ids(said))

    def _device(self, identity: str, known: dict[str, Device]) -> Device:
        if identity not in known:
            attribute = self.pod.world.driver_file.probe.identity_attribute
            raise DriverFailed(
                f"container {self.name} of pod {self.pod.name} sees a device {identity}, but no ResourceSlice of "
                f"{self.pod.world.driver_file.driver} has a device with that {attribute}",
                hint=f"look at spec.probe of the driver file; known are {', '.join(sorted(known)) or 'none'}",
            )
        return known[identity]


class Pods(tuple[Pod, ...]):
    """Several pods of which the same is expected."""

    __slots__ = ()

    def should_run(self) -> Pods:
        """Wait until all of them run."""
        return Pods(pod.should_run() for pod in self)

    def should_succeed(self) -> Pods:
        """Wait until all of them have succeeded."""
        return Pods(pod.should_succeed() for pod in self)

    @property
    def devices(self) -> dict[str, frozenset[Device]]:
        """The devices of the claims of each, by the pods' names."""
        return {pod.name: pod.devices for pod in self}

    @property
    def seen_devices(self) -> dict[str, frozenset[Device]]:
        """The devices that the containers of each see, by the pods' names."""
        return {pod.name: pod.seen_devices for pod in self}


@dataclass
class _Told:
    """Keeps the last state of a pod during a wait, so that its failure can be explained from it."""

    pod: Pod
    verdict: Callable[[Object], None]
    last: Object | None = None

    def check(self, state: Object) -> None:
        self.last = state
        self.verdict(state)

    def diagnosis(self) -> Diagnosis:
        name = self.last["spec"].get("nodeName") if self.last else None
        node = self.pod.world.kube.find("v1", "Node", name) if name else None
        return diagnose(self.last, self.pod.events, node)


def _running(pod: Object) -> None:
    status = pod.get("status", {})
    started = [each["name"] for each in status.get("containerStatuses", ()) if "running" in each.get("state", {})]
    if status.get("phase") in ("Succeeded", "Failed"):
        raise NeverComes(tell(pod))
    if len(started) < len(pod["spec"]["containers"]):
        raise NotYet(tell(pod))


def _succeeded(pod: Object) -> None:
    phase = pod.get("status", {}).get("phase")
    if phase == "Failed":
        raise NeverComes(tell(pod))
    if phase != "Succeeded":
        raise NotYet(tell(pod))
