"""The word `pod`: what becomes of a pod, and the devices that it was given."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from testbed.drivers.published.slices import Device
from testbed.errors import WaitTimeout
from testbed.kube import messages
from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.claims import Claim
from testbed.vocabulary.observing import queries
from testbed.vocabulary.observing.diagnosis import (
    NOT_UNPREPARED,
    describe_pod,
    diagnose_interruption,
    is_driver_unavailable,
    is_prepare_error,
    line,
    times,
)
from testbed.vocabulary.observing.observation import Diagnosis, Meanwhile, NotObserved, Target, failure, hold, observe
from testbed.vocabulary.pods import pod_states
from testbed.vocabulary.pods.container import Container
from testbed.vocabulary.pods.pod_states import Check
from testbed.vocabulary.pods.probe_results import SeenDevices
from testbed.vocabulary.world import World
from testbed.waiting import Budget, NotYet, eventually


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
    def uid(self) -> str:
        """What tells it from a later one of the same name."""
        return str(self.object["metadata"]["uid"])

    @property
    def phase(self) -> str:
        """Where in its life it is: Pending, Running, Succeeded, Failed."""
        return str(self.object.get("status", {}).get("phase", "Pending"))

    @property
    def node(self) -> str:
        """The node that it is on; '' as long as there is none."""
        return str(self.object["spec"].get("nodeName", ""))

    @property
    def events(self) -> list[Object]:
        """What Kubernetes says about it, the newest last."""
        return queries.events_of(self.world, self.namespace, self.name)

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
    def extended_claim(self) -> Claim | None:
        """The claim that the scheduler made for it, because it asks for devices as extended resources; None as long as there is none."""
        made = self.object.get("status", {}).get("extendedResourceClaimStatus")
        return Claim(self.world, self.namespace, made["resourceClaimName"]) if made else None

    @property
    def extended_requests(self) -> frozenset[tuple[str, str, str]]:
        """Container, resource and name of each request in that claim, as its status says."""
        made = self.object.get("status", {}).get("extendedResourceClaimStatus", {})
        found = made.get("requestMappings", ())
        return frozenset((each["containerName"], each["resourceName"], each["requestName"]) for each in found)

    @property
    def devices(self) -> frozenset[Device]:
        """The devices of all its claims."""
        return frozenset(device for claim in self.claims.values() for device in claim.devices)

    @property
    def seen_devices(self) -> SeenDevices:
        """The devices that its containers see. Asks the containers themselves, not Kubernetes."""
        names = [each["name"] for each in self.object["spec"]["containers"]]
        return SeenDevices(look for each in self.containers(*names) for look in each.seen_devices.probe_results)

    def container(self, name: str) -> Container:
        """One of its containers."""
        return Container(self, name)

    def containers(self, *names: str) -> tuple[Container, ...]:
        """Some of its containers, in this order."""
        return tuple(self.container(name) for name in names)

    def delete(self, *, by_force: bool = False) -> Pod:
        """Ask for its end, as a user does; by force it is gone from the API at once, and its kubelet tidies up later."""
        self.world.kube.delete(self.object, grace=0 if by_force else None)
        return self

    def delete_by_force(self) -> Pod:
        """Take it out of the API at once, as `kubectl delete --force` does; its kubelet ends it later."""
        self.world.kube.delete(self.object, grace=0)
        return self

    def trigger_sync(self) -> Pod:
        """Change it a little, so that its kubelet looks at it now and not at its next round, a minute later."""
        self.world.kube.patch(self.object, {"metadata": {"annotations": {"looked-at": secrets.token_hex(3)}}})
        return self

    def should_have_claims(self) -> Pod:
        """Wait until every claim that it wants has a name: those from templates have been made."""
        return self.should("have its claims", pod_states.has_claims, budgets.CREATED)

    def should_run(self) -> Pod:
        """Wait until all its containers run."""
        return self.should("run", pod_states.running, budgets.RUN)

    def should_recover(self) -> Pod:
        """Wait until all its containers run, now that nothing keeps them from it any more.

        Its kubelet has tried before, and would again only a minute later; it is told to look now.
        """
        return self.should("run at last", pod_states.running, budgets.RECOVERED, self.trigger_sync)

    def should_succeed(self) -> Pod:
        """Wait until all its containers have ended with 0."""
        return self.should("succeed", pod_states.succeeded, budgets.SUCCEED)

    def should_end(self) -> Pod:
        """Wait until all its containers have ended, well or badly."""
        return self.should("end", pod_states.ended, budgets.SUCCEED)

    def should_be_unschedulable(self, because: str) -> Pod:
        """Wait until the scheduler has refused it in these words."""
        return self.should(
            f"be refused by the scheduler: {because}", pod_states.unschedulable(because), budgets.UNSCHEDULABLE
        )

    def should_have_event(self, reason: str, text: str) -> Pod:
        """Wait for an event about it, with this reason and this text in its message."""
        return self._wait_for_event(f"{reason}: …{text}…", _says(reason, text))

    def should_fail_to_prepare(self, claim: str, because: str = "") -> Pod:
        """Wait until its driver has refused to prepare a claim, in that claim's answer or for the whole call, in these words."""
        return self._wait_for_event(_refusal(claim, because), _refuses(claim, because))

    def should_have_event_again(self, reason: str, text: str) -> Pod:
        """Make its kubelet look now, and wait until it is told the same once more; no container may be started meanwhile."""
        return self._wait_for_event_again(f"{reason}: …{text}…", _says(reason, text))

    def should_fail_to_prepare_again(self, claim: str, because: str = "") -> Pod:
        """Make its kubelet ask now, and wait until its driver refuses the claim once more; no container may be started meanwhile."""
        return self._wait_for_event_again(_refusal(claim, because), _refuses(claim, because))

    def should_wait_for_its_driver(self) -> Pod:
        """Wait until its kubelet has said that nobody answers for its driver."""
        return self._wait_for_event("that nobody answers for its driver", is_driver_unavailable)

    def _wait_for_event(self, what: str, is_it: Callable[[Object], bool]) -> Pod:
        def check(event: Object) -> None:
            if not is_it(event):
                raise NotYet(f"it was told: {line(event)}")

        return self._observe_events(f"be told {what}", check, self._unblock)

    def _wait_for_event_again(self, what: str, is_it: Callable[[Object], bool]) -> Pod:
        before = self._times(is_it)
        self.trigger_sync()

        def check(event: Object) -> None:
            if self._times(is_it) <= before:
                raise NotYet(f"since then nothing new; it was told: {line(event)}")

        return self._observe_events(f"be told again {what}", check, self.should_stay_pending)

    def _times(self, is_it: Callable[[Object], bool]) -> int:
        """How often it was told so: of what is the same there is one event, which counts."""
        return sum(times(event) for event in self.events if is_it(event))

    def _observe_events(self, what: str, check: Check, meanwhile: Meanwhile) -> Pod:
        about = f"involvedObject.kind=Pod,involvedObject.name={self.name}"
        events = Target("v1", "Event", self.namespace, f"about pod {self.name}", about)
        expected = f"pod {self.name} to {what}"
        observe(self.world.kube, events, check, expected, budgets.EVENT, self._diagnosis, meanwhile)
        return self

    def should_be_replaced(self, predecessor: str) -> Pod:
        """Wait until another pod has its name, which is not the one with the UID `predecessor`, and runs."""
        return self.should("be replaced and run", pod_states.other_than(predecessor), budgets.RUN)

    def should_stay_running(self) -> Pod:
        """Nothing may end it now; its length is a budget."""
        return self._should_stay("running", pod_states.staying(pod_states.running))

    def should_stay_pending(self) -> Pod:
        """None of its containers may be started now; its length is a budget."""
        return self._should_stay("pending", pod_states.staying(pod_states.pending))

    def should_stay_terminating(self) -> Pod:
        """It has to go, but may not be gone now: something of it is not done yet. The length is a budget."""
        self._should_stay("on its way out", pod_states.ending)
        if self.world.kube.find("v1", "Pod", self.name, self.namespace) is None:
            raise NotObserved(f"expected pod {self.name} to stay on its way out\n  last seen: it is gone")
        return self

    def should_stay_unscheduled(self) -> Pod:
        """The scheduler may not give it to a node now; its length is a budget."""
        return self._should_stay("without a node", pod_states.staying(pod_states.unplaced))

    def should_stay_unbound(self) -> Pod:
        """The scheduler may not give it to a node either when it looks at the binding conditions once more; its length is a budget."""
        return self._should_stay("without a node", pod_states.staying(pod_states.unplaced), budgets.STAYS_UNBOUND)

    def should_be_disrupted(self, reason: str) -> Pod:
        """Wait until its status says that somebody ends it, and for this reason. It has to live on for long enough to be seen."""
        return self.should(f"be ended: {reason}", pod_states.disrupted(reason), budgets.EVENT)

    def should_be_gone(self) -> None:
        """Wait until there is no such pod any more."""

        def gone() -> None:
            left = self.world.kube.find("v1", "Pod", self.name, self.namespace)
            if left:
                raise NotYet(describe_pod(left))

        expected = f"pod {self.name} to be gone"
        try:
            eventually(gone, expected, budgets.POD_GONE, longest_pause=0.1)
        except WaitTimeout as late:
            raise failure(
                expected, late.last_seen, late.budget, queries.unless_node_is_away(self.world, NOT_UNPREPARED)
            ) from late

    def should(self, verb: str, check: Check, budget: Budget, meanwhile: Meanwhile | None = None) -> Pod:
        """Wait until its state passes the check. The other words, and those of its containers, say it in words."""
        told = _Told(self, check)
        expected = f"{self._target} to {verb}"
        observe(self.world.kube, self._target, told.check, expected, budget, told.diagnosis, meanwhile or self._unblock)
        return self

    def _unblock(self) -> None:
        """A kubelet that was quicker than the API server's authorizer may not read the claim, and asks again only a minute later."""
        blocked = any(messages.CLAIM_UNKNOWN_TO_AUTHORIZER in event.get("message", "") for event in self.events)
        if blocked and self.world.kube.find("v1", "Pod", self.name, self.namespace):
            self.trigger_sync()

    def _diagnosis(self) -> Diagnosis:
        return _Told(self, pod_states.pending, self.world.kube.find("v1", "Pod", self.name, self.namespace)).diagnosis()

    def _should_stay(self, how: str, check: Check, budget: Budget = budgets.STAYS) -> Pod:
        told = _Told(self, check)
        expected = f"{self._target} to stay {how}"
        hold(self.world.kube, self._target, told.check, expected, budget, told.interruption)
        return self

    @property
    def _target(self) -> Target:
        return Target("v1", "Pod", self.namespace, self.name)


def _says(reason: str, text: str) -> Callable[[Object], bool]:
    return lambda event: event.get("reason") == reason and text in event.get("message", "")


def _refusal(claim: str, because: str) -> str:
    return f"that its driver refuses claim {claim}" + (f": …{because}…" if because else "")


def _refuses(claim: str, because: str) -> Callable[[Object], bool]:
    return lambda event: is_prepare_error(event, claim) and because in event["message"]


@dataclass
class _Told:
    """Keeps the last state of a pod during a wait, so that its failure can be explained from it."""

    pod: Pod
    verdict: Check
    last: Object | None = None

    def check(self, state: Object) -> None:
        self.last = state
        self.verdict(state)

    def diagnosis(self) -> Diagnosis:
        return queries.why(self.pod.world, self.pod.namespace, self.pod.name, self.last)

    def interruption(self) -> Diagnosis:
        return diagnose_interruption(self.last, queries.node_of(self.pod.world, self.last))
