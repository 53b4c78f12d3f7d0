"""Which component of the cluster failed, decided from what was observed. Pure; `surroundings` observes and repairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

ETCD, API_SERVER = "etcd", "kube-apiserver"
CONTROLLER_MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"
NODE, RUNTIME, KUBELET = "node", "containerd", "kubelet"
# A component comes after those that it needs: they are repaired first, and named first.
ORDER = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER, NODE, RUNTIME, KUBELET)


@dataclass(frozen=True)
class FailedComponent:
    """A component that does not work. `node` is '' for the control plane; `seen` is what was seen of it."""

    name: str
    node: str = ""
    seen: str = field(default="", compare=False)

    def __str__(self) -> str:
        if self.name == NODE:
            return f"node {self.node}"
        return f"{self.name} on {self.node}" if self.node else self.name


@dataclass(frozen=True)
class CanaryState:
    """How far a canary pod came: bound to its node by the scheduler, and then handled by the kubelet.

    `has_no_room` is True if the scheduler reports that the node cannot take a pod without a claim, because it is full for example.
    """

    node: str
    is_bound: bool
    is_handled: bool
    seen: str
    has_claim: bool = False
    has_its_claim: bool = True  # False if the controller manager has not generated it
    has_no_room: bool = False


@dataclass(frozen=True)
class Observation:
    """What was observed after a failed test. Texts are '' for what works; `kubelets` and `nodes` have those that do not, by node."""

    dead: Sequence[FailedComponent] = ()
    api_server: str = ""
    controller_manager: str = ""
    pods: Sequence[CanaryState] = ()
    kubelets: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)


def failed_components(seen: Observation) -> list[FailedComponent]:
    """Return the components that failed, in the order of their repair; none if the cluster works without the driver."""
    if seen.dead:
        return _in_order(seen.dead)
    if seen.api_server:
        return [FailedComponent(ETCD if "etcd" in seen.api_server else API_SERVER, seen=seen.api_server)]
    found = {str(each): each for each in _by_canaries(seen)}
    return _in_order(found.values())


def _by_canaries(seen: Observation) -> Iterator[FailedComponent]:
    if seen.controller_manager:
        yield FailedComponent(CONTROLLER_MANAGER, seen=seen.controller_manager)
    plain_fails_on = {each.node for each in seen.pods if not each.has_claim and not each.is_handled}
    for pod in seen.pods:
        if pod.is_handled or (pod.has_claim and pod.node in plain_fails_on):
            continue
        if pod.has_no_room and "not found" not in seen.nodes.get(pod.node, ""):
            continue  # the scheduler works
        yield _by_pod(pod, seen)


def _by_pod(pod: CanaryState, seen: Observation) -> FailedComponent:
    """Return the component that stopped a canary pod: the one whose turn it was."""
    if not pod.has_its_claim:
        return FailedComponent(CONTROLLER_MANAGER, seen=pod.seen)
    if "not found" in seen.nodes.get(pod.node, ""):
        return FailedComponent(NODE, pod.node, seen.nodes[pod.node])
    if not pod.is_bound:
        return FailedComponent(SCHEDULER, seen=pod.seen)
    if pod.node in seen.kubelets or pod.has_claim:
        return FailedComponent(KUBELET, pod.node, seen.kubelets.get(pod.node) or pod.seen)
    unusable = seen.nodes.get(pod.node, "")
    if unusable and "runtime" not in unusable:
        return FailedComponent(NODE, pod.node, unusable)
    return FailedComponent(RUNTIME, pod.node, "; ".join(filter(None, [pod.seen, unusable])))


def _in_order(found: Iterable[FailedComponent]) -> list[FailedComponent]:
    """Return components in the order of their repair, without those that fail only because their node does."""
    every = list(found)
    down = {each.node for each in every if each.name == NODE}
    kept = [each for each in every if each.name == NODE or each.node not in down or not each.node]
    return sorted(kept, key=lambda each: (ORDER.index(each.name), each.node))
