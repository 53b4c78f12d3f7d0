"""Which nodes are tested, and how their capabilities are combined."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from testbed.errors import ApiError
from testbed.providers.base import Capability
from testbed.providers.existing.node_trial import TrialResult, try_out

RUN = frozenset({Capability.RUN_ON_NODE})
ALL = RUN | {Capability.RESTART_KUBELET, Capability.RESTART_RUNTIME}


class Pods:
    """Pods on nodes with the given capabilities; all other nodes have every capability."""

    def __init__(self, **lacking: tuple[frozenset[Capability], str]) -> None:
        self.lacking = lacking
        self.tried: set[str] = set()
        self.homes = 0

    def create_namespace(self) -> None:
        self.homes += 1

    def capabilities(self, node: str) -> tuple[frozenset[Capability], str]:
        self.tried.add(node)
        return self.lacking.get(node, (ALL, ""))


def _node(name: str, *, ready: str = "True", system: str = "linux", **spec: Any) -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": ready}], "nodeInfo": {"operatingSystem": system}}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def _try(pods: Any, *nodes: dict[str, Any], expected: tuple[str, ...] = ()) -> TrialResult:
    return try_out(pods, nodes, expected)


def test_only_the_drivers_nodes_are_tested() -> None:
    pods = Pods()
    others = [_node(name) for name in ("c", "d", "e", "f")]
    found = _try(pods, _node("a"), _node("b"), *others, expected=("a", "b"))
    assert (found.able, found.why_not) == (ALL, "")
    assert found.not_counted == ("nodes c, d, e and 1 more: not a node of the driver",)
    assert (pods.tried, pods.homes) == ({"a", "b"}, 1)


def test_an_capability_that_one_of_the_drivers_nodes_lacks_is_missing() -> None:
    found = _try(Pods(a=(RUN, "no systemd")), _node("a"), _node("b"), expected=("a", "b"))
    assert found == TrialResult(RUN, "node a: no systemd")


def test_without_a_driver_a_deviating_node_is_ignored() -> None:
    found = _try(Pods(b=(frozenset(), "exec format error"), c=(RUN, "no systemd")), *map(_node, "abc"))
    assert found == TrialResult(ALL, "", ("node b: exec format error", "node c: no systemd"))


def test_an_capability_that_all_nodes_lack_is_missing() -> None:
    found = _try(Pods(a=(RUN, "no systemd"), b=(RUN, "no systemd")), *map(_node, "ab"))
    assert found == TrialResult(RUN, "nodes a, b: no systemd")


TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (_node("b", system="windows"), "node b: runs windows"),
        (_node("b", ready="Unknown"), "node b: not Ready"),
        (_node("b", taints=[TAINT]), "node b: tainted or cordoned"),
        (_node("b", unschedulable=True), "node b: tainted or cordoned"),
    ],
)
def test_nodes_that_take_no_ordinary_pods_are_not_counted(node: dict[str, Any], said: str) -> None:
    pods = Pods()
    assert _try(pods, _node("a"), node) == TrialResult(ALL, "", (said,))
    assert pods.tried == {"a"}


def test_a_node_of_the_driver_that_is_not_ready_is_not_counted() -> None:
    assert _try(Pods(), _node("a"), _node("b", ready="False"), expected=("a", "b")).able == ALL


def test_without_a_node_to_test_there_are_no_capabilities() -> None:
    pods = Pods()
    assert _try(pods, _node("a", ready="False")).why_not == "there is no node to test"
    assert pods.homes == 0


def test_if_the_namespace_is_refused_no_node_is_tested() -> None:
    pods = Pods()

    def refuse() -> None:
        raise ApiError("PATCH", 403, "Forbidden", "no privileged pods")

    pods.create_namespace = refuse  # type: ignore[method-assign]  # the fake's own
    found = _try(pods, _node("a"))
    assert (found.able, "no privileged pods" in found.why_not, pods.tried) == (frozenset(), True, set())


def test_several_nodes_are_tested_in_parallel() -> None:
    together = threading.Barrier(3)

    class Patient(Pods):
        def capabilities(self, node: str) -> tuple[frozenset[Capability], str]:
            together.wait(5)
            return super().capabilities(node)

    assert _try(Patient(), *map(_node, "abc")).able == ALL
