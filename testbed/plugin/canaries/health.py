"""Observe whether the cluster works without the driver under test: its processes, its API server, canary pods. Used by `surroundings`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from testbed.errors import ApiError, TestbedError, WaitTimeout
from testbed.kube.client import Kube
from testbed.plugin.canaries.findings import NODE, ORDER, FailedComponent, Observation
from testbed.plugin.canaries.pods import Canaries, CanaryResult
from testbed.providers.base import Cluster, Component
from testbed.vocabulary.observing.diagnosis import describe_unready
from testbed.waiting import Budget, NotYet, eventually

_API_SERVER = Budget("API server ready", 45, "a test may be restarting it, which takes up to half a minute")
_REFUSED = range(400, 429)  # the API server answers: this user may not ask, or an admission plugin refuses canaries
_FIRST_PROCESS, _CONTROL_PLANE = "init", "control-plane"


def observe(cluster: Cluster, canaries: Canaries, nodes: Sequence[str], *, with_claims: bool) -> Observation:
    """Return what is broken now. The cheapest check comes first, and a dead process is found without canaries.

    Where canaries are refused nothing is known, so nothing is broken.
    """
    dead = dead_components(cluster)
    if dead:
        return Observation(dead=dead)
    api_server = _api_server_error(canaries.kube)
    if api_server:
        return Observation(dead=dead_components(cluster), api_server=api_server)
    try:
        found = canaries.run(nodes, with_claims=with_claims)
        return _with_details(cluster, canaries.kube, nodes, found)
    except ApiError as lost:
        if lost.status in _REFUSED:
            return Observation()
        return Observation(dead=dead_components(cluster), api_server=str(lost))


def dead_components(cluster: Cluster) -> list[FailedComponent]:
    """Return the components whose processes do not run, as far as the provider sees them."""
    try:
        found = [_failed(each) for each in cluster.components() if not each.alive]
    except TestbedError:  # its container engine does not answer; the canaries show what that means
        return []
    return [each for each in found if each.name in ORDER]


def _failed(component: Component) -> FailedComponent:
    """Return the component by the names of `findings`. A provider names it MACHINE/COMPONENT, or MACHINE if it sees no more."""
    machine, _, part = component.name.rpartition("/")
    seen = f"{component.name} does not run"
    if part == _FIRST_PROCESS or not machine:
        return FailedComponent(NODE, machine or part, seen)
    return FailedComponent(part, "" if machine == _CONTROL_PLANE else machine, seen)


def _api_server_error(kube: Kube) -> str:
    """Return why the API server is not ready, or ''. Wait a while for it."""

    def check() -> None:
        try:
            kube.request("GET", "/readyz")
        except ApiError as refused:
            if refused.status not in _REFUSED:
                raise NotYet(str(refused)) from refused

    try:
        eventually(check, "the API server to be ready", _API_SERVER)
    except WaitTimeout as late:
        return late.last_seen
    return ""


def _with_details(cluster: Cluster, kube: Kube, nodes: Sequence[str], found: CanaryResult) -> Observation:
    if not found.missing:
        return Observation(pods=found.pods)
    return Observation(
        dead=dead_components(cluster),
        controller_manager=found.controller_manager,
        pods=found.pods,
        kubelets=dict(_kubelet_errors(kube, nodes)),
        nodes=dict(_node_errors(kube, nodes)),
    )


def _kubelet_errors(kube: Kube, nodes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what the API server says about kubelets whose /healthz is not ok."""
    for node in nodes:
        try:
            kube.request("GET", f"/api/v1/nodes/{node}/proxy/healthz")
        except ApiError as refused:
            if refused.status not in _REFUSED:
                yield node, f"/healthz of the kubelet: {refused.message}"


def _node_errors(kube: Kube, nodes: Sequence[str]) -> Iterator[tuple[str, str]]:
    known = {str(each["metadata"]["name"]): each for each in kube.list("v1", "Node")}
    for node in nodes:
        problem = describe_unready([known[node]]) if node in known else f"node {node} not found"
        if problem:
            yield node, problem
