"""Pods of a scenario: their state, claims and devices, and the waits for them."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from testbed.drivers.published.slices import Device
from testbed.errors import TestbedError
from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.checked_sets import CheckedSet
from testbed.vocabulary.claims import Claim
from testbed.vocabulary.observing import queries
from testbed.vocabulary.observing.diagnosis import (
    NOT_UNPREPARED,
    describe_pod,
    diagnose_interruption,
    event_text,
    occurrences,
)
from testbed.vocabulary.observing.observation import Diagnosis, Meanwhile, NotObserved, Target, hold, observe
from testbed.vocabulary.observing.prepare_errors import (
    has_text,
    is_driver_unavailable,
    is_unknown_to_authorizer,
    prepare_error,
)
from testbed.vocabulary.pods import pod_states
from testbed.vocabulary.pods.container import Container
from testbed.vocabulary.pods.exempt_uses import require_devices, running_or_refused
from testbed.vocabulary.pods.pod_states import Check
from testbed.vocabulary.pods.probe_results import SeenDevices, named_devices
from testbed.vocabulary.world import World
from testbed.waiting import Budget, NotYet, eventually_true

_SYNC = "looked-at"  # an annotation with a random value


@dataclass(frozen=True)
class Pod:
    """A pod of the scenario."""

    world: World
    namespace: str
    name: str

    @property
    def object(self) -> Object:
        """Return the current object."""
        return self.world.kube.get("v1", "Pod", self.name, self.namespace)

    @property
    def uid(self) -> str:
        """Return the UID, which differs from that of a later pod of the same name."""
        return str(self.object["metadata"]["uid"])

    @property
    def phase(self) -> str:
        """Return the phase: Pending, Running, Succeeded or Failed."""
        return str(self.object.get("status", {}).get("phase", "Pending"))

    @property
    def node(self) -> str:
        """Return the node that the pod is bound to, or ''."""
        return str(self.object["spec"].get("nodeName", ""))

    @property
    def events(self) -> list[Object]:
        """Return the events of the pod, oldest first."""
        return queries.events_of(self.world, self.namespace, self.name)

    @property
    def claims(self) -> dict[str, Claim]:
        """Return the claims by their names in the pod's spec."""
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
        """Return the claim that the scheduler created for the pod's extended resources, or None."""
        made = self.object.get("status", {}).get("extendedResourceClaimStatus")
        return Claim(self.world, self.namespace, made["resourceClaimName"]) if made else None

    @property
    def extended_requests(self) -> CheckedSet[tuple[str, str, str]]:
        """Return container, resource and name of each request in that claim, from the pod's status."""
        made = self.object.get("status", {}).get("extendedResourceClaimStatus", {})
        found = made.get("requestMappings", ())
        return CheckedSet((each["containerName"], each["resourceName"], each["requestName"]) for each in found)

    @property
    def devices(self) -> CheckedSet[Device]:
        """Return the devices that are allocated to the claims."""
        return CheckedSet(device for claim in self.claims.values() for device in claim.devices)

    @property
    def seen_devices(self) -> SeenDevices:
        """Return the devices that the probe finds in the containers."""
        names = [each["name"] for each in self.object["spec"]["containers"]]
        return SeenDevices(result for each in self.containers(*names) for result in each.seen_devices.probe_results)

    @property
    def reachable_devices(self) -> SeenDevices:
        """Return the devices that the probe for containers without a claim finds in the containers that run; none if the pod is refused."""
        running = self.containers(*pod_states.running_containers(self.object))
        return SeenDevices(result for each in running for result in each.reachable_devices.probe_results)

    def container(self, name: str) -> Container:
        """Return a container."""
        return Container(self, name)

    def containers(self, *names: str) -> tuple[Container, ...]:
        """Return containers, in this order."""
        return tuple(self.container(name) for name in names)

    def delete(self, *, by_force: bool = False) -> Pod:
        """Delete the pod without waiting; `by_force` removes it from the API at once, before its kubelet has ended it."""
        self.world.kube.delete(self.object, grace=0 if by_force else None)
        return self

    def trigger_sync(self) -> Pod:
        """Change an annotation, so that the kubelet syncs the pod now and not in up to a minute."""
        self.world.kube.patch(self.object, {"metadata": {"annotations": {_SYNC: secrets.token_hex(3)}}})
        return self

    def should_have_claims(self) -> Pod:
        """Wait until all claims from templates have been generated."""
        return self.should("have its claims", pod_states.has_claims, budgets.CREATED, needs_driver=False)

    def should_be_scheduled(self) -> Pod:
        """Wait until the scheduler has bound the pod to a node, which needs free devices but no prepared claim."""
        self.should("be scheduled", pod_states.scheduled, budgets.ALLOCATED)
        return self._with_recorded_devices()

    def should_run(self) -> Pod:
        """Wait until all containers run."""
        self.should("run", pod_states.running, budgets.RUN)
        return self._with_recorded_devices()

    def should_run_or_be_refused(self) -> Pod:
        """Wait until all containers run, or an event says why they do not. Require that no container runs without its devices.

        A refused pod may run after all within the budget MAY_RUN, because something else delayed it.
        """
        self.should("run or be refused", running_or_refused(lambda: self.events), budgets.RUN)
        eventually_true(self._has_running_container, budgets.MAY_RUN)
        require_devices(self.containers(*pod_states.running_containers(self.object)))
        return self

    def should_recover(self) -> Pod:
        """Wait until all containers run, after the cause of earlier failures was removed.

        The kubelet would retry only after a minute, so this triggers a sync every two seconds.
        """
        return self.should("recover and run", pod_states.running, budgets.RECOVERED, self.trigger_sync)

    def should_not_run_without_devices(self) -> Pod:
        """Trigger syncs for the budget MAY_RUN. The pod may stay pending, but if it runs, it must see its devices."""
        runs = eventually_true(self._runs_after_sync, budgets.MAY_RUN)
        if runs and frozenset(self.seen_devices) != frozenset(self.devices):
            expected = f"expected pod {self.name} to run only with its devices"
            raise NotObserved(f"{expected}\n  last seen: it runs, and sees {self._devices_text()}", by_driver=True)
        return self

    def _has_running_container(self) -> bool:
        now = self.object
        if not pod_states.running_containers(now):
            self.trigger_sync()
        return bool(pod_states.running_containers(now))

    def _runs_after_sync(self) -> bool:
        self.trigger_sync()
        return self.phase == "Running"

    def should_succeed(self) -> Pod:
        """Wait until the pod has succeeded."""
        return self.should("succeed", pod_states.succeeded, budgets.SUCCEED)

    def should_end(self) -> Pod:
        """Wait until the pod has succeeded or failed."""
        return self.should("end", pod_states.ended, budgets.SUCCEED)

    def should_be_unschedulable(self, because: str) -> Pod:
        """Wait until the scheduler reports the pod as unschedulable with this text in its message."""
        expected = f"be unschedulable with a message …{because}…"
        return self.should(expected, pod_states.unschedulable(because), budgets.UNSCHEDULABLE, needs_driver=False)

    def should_have_event(self, reason: str, text: str) -> Pod:
        """Wait for an event with this reason and this text in its message, which only counts if Kubernetes wrote it."""
        return self._wait_for_event(f"{reason}: …{text}…", has_text(reason, text))

    def should_fail_to_prepare(self, claim: str, because: str = "") -> Pod:
        """Wait for an event that the driver answered NodePrepareResources with an error, for this claim or for the whole call.

        `because` is a text in the error.
        """
        with self._describing_devices():
            return self._wait_for_event(*prepare_error(claim, because), self._require_pending)

    def should_have_event_again(self, reason: str, text: str) -> Pod:
        """Trigger a sync and wait until the event occurs again; no container may be started meanwhile."""
        return self._wait_for_event_again(f"{reason}: …{text}…", has_text(reason, text))

    def should_fail_to_prepare_again(self, claim: str, because: str = "") -> Pod:
        """Trigger a sync and wait until the driver answers with an error again; no container may be started meanwhile."""
        with self._describing_devices():
            return self._wait_for_event_again(*prepare_error(claim, because))

    def should_wait_for_its_driver(self) -> Pod:
        """Wait for an event that the driver is not registered or does not answer."""
        return self._wait_for_event("that its driver is not registered or does not answer", is_driver_unavailable)

    def _wait_for_event(self, what: str, matches: Callable[[Object], bool], meanwhile: Meanwhile | None = None) -> Pod:
        def check(event: Object) -> None:
            if not matches(event):
                raise NotYet(f"event {event_text(event)}")

        return self._observe_events(f"have an event {what}", check, meanwhile or self._unblock)

    def _wait_for_event_again(self, what: str, matches: Callable[[Object], bool]) -> Pod:
        before = self._occurrences(matches)
        self.trigger_sync()

        def check(event: Object) -> None:
            if self._occurrences(matches) <= before:
                raise NotYet(f"the event has not occurred again; event {event_text(event)}")

        return self._observe_events(f"have another event {what}", check, self.should_stay_pending)

    def _occurrences(self, matches: Callable[[Object], bool]) -> int:
        """Return how often matching events occurred. Kubernetes counts repeated events in one object."""
        return sum(occurrences(event) for event in self.events if matches(event))

    def _observe_events(self, what: str, check: Check, meanwhile: Meanwhile) -> Pod:
        about = f"involvedObject.kind=Pod,involvedObject.name={self.name}"
        events = Target("v1", "Event", self.namespace, f"about pod {self.name}", about)
        expected = f"pod {self.name} to {what}"
        observe(self.world.kube, events, check, expected, budgets.EVENT, self._diagnosis, meanwhile)
        return self

    def should_be_replaced(self, predecessor: str) -> Pod:
        """Wait until another pod than the one with the UID `predecessor` has this name and runs."""
        return self.should("be replaced and run", pod_states.other_than(predecessor), budgets.RUN)

    def should_stay_running(self) -> Pod:
        """Require that the pod keeps running for the budget STAYS."""
        return self._should_stay("running", pod_states.not_deleted(pod_states.running))

    def should_stay_pending(self) -> Pod:
        """Require that no container is started for the budget STAYS."""
        with self._describing_devices():
            return self._should_stay("pending", pod_states.not_deleted(pod_states.pending))

    def should_stay_terminating(self) -> Pod:
        """Require that the deleted pod stays for the budget STAYS, because its claims are not yet unprepared."""
        return self._should_stay("terminating", pod_states.terminating)

    def should_stay_unscheduled(self) -> Pod:
        """Require that the scheduler does not bind the pod to a node for the budget STAYS."""
        return self._should_stay("without a node", pod_states.not_deleted(pod_states.unscheduled))

    def should_stay_unbound(self) -> Pod:
        """Do the same as should_stay_unscheduled for the budget STAYS_UNBOUND, in which the scheduler checks binding conditions again."""
        check = pod_states.not_deleted(pod_states.unscheduled)
        return self._should_stay("without a node", check, budgets.STAYS_UNBOUND)

    def should_be_disrupted(self, reason: str) -> Pod:
        """Wait for the condition DisruptionTarget with this reason. The pod's grace period has to be long enough to observe it."""
        return self.should(
            f"have the condition DisruptionTarget: {reason}",
            pod_states.disrupted(reason),
            budgets.EVENT,
            needs_driver=False,
        )

    def should_be_gone(self) -> None:
        """Wait until the pod no longer exists."""

        def gone() -> None:
            left = self.world.kube.find("v1", "Pod", self.name, self.namespace)
            if left:
                raise NotYet(describe_pod(left))

        expected = f"pod {self.name} to be gone"
        queries.eventually_or_explain(self.world, gone, expected, budgets.POD_GONE, NOT_UNPREPARED)

    def should(
        self,
        verb: str,
        check: Check,
        budget: Budget,
        meanwhile: Meanwhile | None = None,
        *,
        needs_driver: bool = True,
    ) -> Pod:
        """Wait until a check accepts the pod. For the verbs of this class and of Container.

        `needs_driver` is False if components of the cluster alone bring the state about.
        """
        last = _LastState(self, check, needs_driver=needs_driver)
        expected = f"{self._target} to {verb}"
        observe(
            self.world.kube, self._target, last.check, expected, budget, last.diagnose, meanwhile or self._while_waiting
        )
        return self

    def _with_recorded_devices(self) -> Pod:
        """Remember how the allocated devices were published, because that may change while the pod uses them."""
        for claim in self.claims.values():
            claim.record_devices()
        return self

    def _while_waiting(self) -> None:
        """Remember what slices say: a driver may publish a device only until it is allocated. Then do the same as _unblock."""
        self.world.slices()
        self._unblock()

    def _unblock(self) -> None:
        """Trigger a sync if the kubelet requested the claim before the node authorizer knew the pod; it would retry after a minute."""
        blocked = any(map(is_unknown_to_authorizer, self.events))
        if blocked and self.world.kube.find("v1", "Pod", self.name, self.namespace):
            self.trigger_sync()

    def _require_pending(self) -> None:
        """Raise NotObserved if a container was started, which happens only when all claims are prepared."""
        self._unblock()
        now = self.world.kube.find("v1", "Pod", self.name, self.namespace)
        try:
            pod_states.pending(now or {"status": {}})
        except NotYet as started:
            expected = f"expected pod {self.name} not to run, because its driver has to refuse a claim"
            raise NotObserved(f"{expected}\n  last seen: {started}", by_driver=True) from started

    @contextlib.contextmanager
    def _describing_devices(self) -> Iterator[None]:
        """Add the devices that the pod's containers see to a failure, if the pod runs although it must not."""
        try:
            yield
        except NotObserved as failed:
            if self.world.kube.find("v1", "Pod", self.name, self.namespace) is None or self.phase != "Running":
                raise
            text = f"{failed.what}\n  last seen: the pod runs, and sees {self._devices_text()}"
            raise NotObserved(text, by_driver=failed.by_driver) from failed

    def _devices_text(self) -> str:
        """Return the devices that the containers see, and those that are allocated to the pod, for a message."""
        try:
            seen, allocated = self.seen_devices, self.devices
        except TestbedError as unknown:
            return f"an unknown device: {unknown.what}"
        return f"{named_devices(seen)}; {named_devices(allocated)} is allocated to it"

    def _diagnosis(self) -> Diagnosis:
        last = self.world.kube.find("v1", "Pod", self.name, self.namespace)
        return _LastState(self, pod_states.pending, last, needs_driver=False).diagnose()

    def _should_stay(self, how: str, check: Check, budget: Budget = budgets.STAYS) -> Pod:
        last = _LastState(self, check)
        expected = f"{self._target} to stay {how}"
        hold(self.world.kube, self._target, last.check, expected, budget, last.diagnose_interruption)
        return self

    @property
    def _target(self) -> Target:
        return Target("v1", "Pod", self.namespace, self.name)


@dataclass
class _LastState:
    """The last state of a pod during a wait, from which a failure is diagnosed."""

    pod: Pod
    wanted: Check
    last: Object | None = None
    needs_driver: bool = True

    def check(self, state: Object) -> None:
        self.last = state
        self.wanted(state)

    def diagnose(self) -> Diagnosis:
        found = queries.diagnose_pod(self.pod.world, self.pod.namespace, self.pod.name, self.last)
        return replace(found, by_driver=found.by_driver and self.needs_driver)

    def diagnose_interruption(self) -> Diagnosis:
        return diagnose_interruption(self.last, queries.node_of(self.pod.world, self.last))
