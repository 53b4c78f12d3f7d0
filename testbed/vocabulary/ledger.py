"""All objects that a scenario created, recorded before their creation and deleted in an order that lets drivers unprepare their claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from testbed.errors import WaitTimeout
from testbed.kube.client import Kube, Object
from testbed.vocabulary import budgets
from testbed.vocabulary.observing.diagnosis import NOT_UNPREPARED, describe_pod, describe_unready
from testbed.vocabulary.observing.observation import Diagnosis, failure
from testbed.vocabulary.world import RESOURCE
from testbed.waiting import Budget, NotYet, eventually

# Deleted before the pods, which they would create again. Claims are deleted after the pods that use them.
BEFORE_PODS = ("DaemonSet", "Deployment", "StatefulSet", "Job", "CronJob", "ReplicaSet")
_STUCK = f"{NOT_UNPREPARED.cause}; the driver's log in the evidence shows its NodeUnprepareResources calls"


@dataclass
class Ledger:
    """The objects of one scenario in the order of their creation. `mark` adds the labels of their owner."""

    kube: Kube
    namespace: str
    mark: Callable[[Object], Object]
    entries: list[Object] = field(default_factory=list)

    def apply(self, manifest: Object) -> Object:
        """Apply an object. It is recorded first, in case the server's answer is lost."""
        self.entries.append(manifest)
        return self.kube.apply(self.mark(manifest))

    def create(self, manifest: Object) -> Object:
        """Create an object, which must not exist yet. It is recorded first."""
        self.entries.append(manifest)
        return self.kube.create(self.mark(manifest))

    def clean_up(self) -> None:
        """Delete everything and wait until pods and claims are gone. The namespace is then removed in the background."""
        try:
            self._delete([each for each in self.entries if each["kind"] in BEFORE_PODS])
            self._delete(self.kube.list("v1", "Pod", self.namespace))
            self._wait("v1", "Pod", budgets.PODS_GONE)
            self._delete(self.kube.list(RESOURCE, "ResourceClaim", self.namespace))
            self._wait(RESOURCE, "ResourceClaim", budgets.CLAIMS_GONE)
        finally:
            self._delete([each for each in reversed(self.entries) if each["kind"] not in (*BEFORE_PODS, "Pod")])

    def _delete(self, objects: list[Object]) -> None:
        for each in objects:  # a Deployment's ReplicaSet creates its pods again until it is deleted itself
            self.kube.delete(each, dependents_first=each["kind"] == "Deployment")

    def _wait(self, api_version: str, kind: str, budget: Budget) -> None:
        def gone() -> None:
            left = self.kube.list(api_version, kind, self.namespace)
            if left:
                raise NotYet("still there: " + ", ".join(_left(each) for each in left))

        try:
            eventually(gone, f"all of kind {kind} to be gone", budget, longest_pause=0.1)
        except WaitTimeout as late:
            raise failure(late.waited_for, late.last_seen, late.budget, self._why_stuck()) from late

    def _why_stuck(self) -> Diagnosis:
        """Return the likely cause: a node that is not Ready, where no pod can end, or else the driver."""
        mine = {pod["spec"].get("nodeName") for pod in self.kube.list("v1", "Pod", self.namespace)}
        unready = describe_unready(node for node in self.kube.list("v1", "Node") if node["metadata"]["name"] in mine)
        return Diagnosis(unready, by_environment=True) if unready else Diagnosis(_STUCK)


def _left(each: Object) -> str:
    name = f"{each['kind'].lower()} {each['metadata']['name']}"
    return f"{name} ({describe_pod(each)})" if each["kind"] == "Pod" else name
