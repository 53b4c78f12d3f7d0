"""Which nodes are tried, and what they say together."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from testbed.errors import ApiError
from testbed.providers.base import Capability
from testbed.providers.existing.node_trial import Tried, try_out

RUN = frozenset({Capability.RUN_ON_NODE})
ALL = RUN | {Capability.RESTART_KUBELET, Capability.RESTART_RUNTIME}


class Pods:
    """Pods on nodes that can do what a test says; on the others everything."""

    def __init__(self, **lacking: tuple[frozenset[Capability], str]) -> None:
        self.lacking = lacking
        self.tried: set[str] = set()
        self.homes = 0

    def make_home(self) -> None:
        self.homes += 1

    def abilities(self, node: str) -> tuple[frozenset[Capability], str]:
        self.tried.add(node)
        return self.lacking.get(node, (ALL, ""))


def _node(name: str, *, ready: str = "True", system: str = "linux", **spec: Any) -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": ready}], "nodeInfo": {"operatingSystem": system}}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def _try(pods: Any, *nodes: dict[str, Any], expected: tuple[str, ...] = ()) -> Tried:
    return try_out(pods, nodes, expected)


def test_only_the_drivers_nodes_are_tried() -> None:
    pods = Pods()
    others = [_node(name) for name in ("c", "d", "e", "f")]
    found = _try(pods, _node("a"), _node("b"), *others, expected=("a", "b"))
    assert (found.able, found.why_not) == (ALL, "")
    assert found.passed_over == ("nodes c, d, e and 1 more: none of the driver's",)
    assert (pods.tried, pods.homes) == ({"a", "b"}, 1)


def test_what_one_of_the_drivers_nodes_cannot_counts_for_all() -> None:
    found = _try(Pods(a=(RUN, "no systemd")), _node("a"), _node("b"), expected=("a", "b"))
    assert found == Tried(RUN, "node a: no systemd")


def test_without_a_driver_an_odd_node_takes_nothing_from_the_others() -> None:
    found = _try(Pods(b=(frozenset(), "exec format error"), c=(RUN, "no systemd")), *map(_node, "abc"))
    assert found == Tried(ALL, "", ("node b: exec format error", "node c: no systemd"))


def test_what_no_node_can_is_no_ability() -> None:
    found = _try(Pods(a=(RUN, "no systemd"), b=(RUN, "no systemd")), *map(_node, "ab"))
    assert found == Tried(RUN, "nodes a, b: no systemd")


TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (_node("b", system="windows"), "node b: runs windows"),
        (_node("b", ready="Unknown"), "node b: not Ready"),
        (_node("b", taints=[TAINT]), "node b: keeps ordinary pods away"),
        (_node("b", unschedulable=True), "node b: keeps ordinary pods away"),
    ],
)
def test_nodes_where_no_ordinary_pod_runs_are_passed_over(node: dict[str, Any], said: str) -> None:
    pods = Pods()
    assert _try(pods, _node("a"), node) == Tried(ALL, "", (said,))
    assert pods.tried == {"a"}


def test_a_node_of_the_driver_that_is_away_is_passed_over_too() -> None:
    assert _try(Pods(), _node("a"), _node("b", ready="False"), expected=("a", "b")).able == ALL


def test_where_no_node_can_be_tried_nothing_is_possible() -> None:
    pods = Pods()
    assert _try(pods, _node("a", ready="False")).why_not == "there is no node to try it on"
    assert pods.homes == 0


def test_a_cluster_that_refuses_the_pods_home_is_asked_once() -> None:
    pods = Pods()

    def refuse() -> None:
        raise ApiError("PATCH", 403, "Forbidden", "no privileged pods")

    pods.make_home = refuse  # type: ignore[method-assign]  # the fake's own
    found = _try(pods, _node("a"))
    assert (found.able, "no privileged pods" in found.why_not, pods.tried) == (frozenset(), True, set())


def test_several_nodes_are_tried_at_once() -> None:
    together = threading.Barrier(3)

    class Patient(Pods):
        def abilities(self, node: str) -> tuple[frozenset[Capability], str]:
            together.wait(5)
            return super().abilities(node)

    assert _try(Patient(), *map(_node, "abc")).able == ALL
