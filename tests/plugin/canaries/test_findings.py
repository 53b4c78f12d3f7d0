"""Which component failed, from what was observed."""

from __future__ import annotations

from testbed.plugin.canaries.findings import CanaryState, FailedComponent, Observation, failed_components

_FINE = CanaryState("node-1", True, True, "running")
_UNBOUND = CanaryState("node-1", False, False, "Pending, on no node")
_NO_ROOM = CanaryState("node-1", False, False, "Unschedulable: Too many pods", has_no_room=True)
_BOUND = CanaryState("node-1", True, False, "Pending on node-1")
_CLAIM_UNBOUND = CanaryState("node-1", False, False, "no node", has_claim=True)
_CLAIM_BOUND = CanaryState("node-1", True, False, "bound", has_claim=True)
_NO_CLAIM = CanaryState("node-1", False, False, "no claim", has_claim=True, has_its_claim=False)


def _names(**seen: object) -> list[str]:
    return [str(each) for each in failed_components(Observation(**seen))]  # type: ignore[arg-type] # any field


def test_nothing_failed_if_canaries_run() -> None:
    assert _names(pods=[_FINE]) == []


def test_dead_processes_are_named_in_the_order_of_their_repair() -> None:
    dead = [FailedComponent("kubelet", "node-2"), FailedComponent("kube-scheduler"), FailedComponent("etcd")]
    assert _names(dead=dead) == ["etcd", "kube-scheduler", "kubelet on node-2"]


def test_a_node_that_is_down_is_named_without_its_components() -> None:
    dead = [FailedComponent(name, "node-1") for name in ("kubelet", "containerd", "node")]
    assert _names(dead=[*dead, FailedComponent("kubelet", "node-2")]) == ["node node-1", "kubelet on node-2"]


def test_the_api_server_or_its_storage() -> None:
    assert _names(api_server="GET /readyz: no answer") == ["kube-apiserver"]
    assert _names(api_server="GET /readyz: 500: [-]etcd failed") == ["etcd"]


def test_the_component_whose_turn_it_was_when_a_canary_stopped() -> None:
    assert _names(pods=[_UNBOUND]) == ["kube-scheduler"]
    assert _names(pods=[_BOUND], kubelets={"node-1": "refused"}) == ["kubelet on node-1"]
    assert _names(pods=[_BOUND]) == ["containerd on node-1"]
    assert _names(pods=[_BOUND], nodes={"node-1": "container runtime is down"}) == ["containerd on node-1"]
    assert _names(pods=[_BOUND], nodes={"node-1": "node node-1 is short of disk"}) == ["node node-1"]
    assert _names(pods=[_UNBOUND], nodes={"node-1": "node node-1 not found"}) == ["node node-1"]
    assert _names(pods=[_FINE], controller_manager="no default ServiceAccount") == ["kube-controller-manager"]


def test_a_canary_with_a_claim_counts_where_the_one_without_runs() -> None:
    assert _names(pods=[_FINE, _NO_CLAIM]) == ["kube-controller-manager"]
    assert _names(pods=[_FINE, _CLAIM_UNBOUND]) == ["kube-scheduler"]
    assert _names(pods=[_FINE, _CLAIM_BOUND]) == ["kubelet on node-1"]
    assert _names(pods=[_BOUND, _CLAIM_BOUND]) == ["containerd on node-1"]


def test_a_full_node_is_no_failure_of_the_scheduler() -> None:
    assert _names(pods=[_NO_ROOM]) == []
    assert _names(pods=[_NO_ROOM, _CLAIM_UNBOUND]) == []
    assert _names(pods=[_NO_ROOM], nodes={"node-1": "node node-1 not found"}) == ["node node-1"]
