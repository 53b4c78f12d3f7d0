"""What Node objects say, and waiting for it, on answers of the API that change from look to look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from testbed import waiting
from testbed.errors import WaitTimeout
from testbed.kube import nodes
from testbed.kube.client import Kube, Object
from testbed.waiting import Budget

READY = [{"type": "Ready", "status": "True"}]
STARTING = [{"type": "Ready", "status": "False", "message": "cni plugin"}]
LATE = [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]


def node(conditions: Sequence[Object], taints: Sequence[Object] = ()) -> Object:
    return {"metadata": {"name": "n1"}, "status": {"conditions": conditions}, "spec": {"taints": taints}}


class Changing:
    """An API that answers each list of nodes with the next answer, and then with the last one."""

    def __init__(self, *answers: Object) -> None:
        self.answers = list(answers)

    def list(self, *_: Any) -> Sequence[Object]:
        return [self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]]


def kube(*answers: Object) -> Kube:
    return cast("Kube", Changing(*answers))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget that is over at once."""
    monkeypatch.setattr(nodes, "_NODES", Budget("nodes ready", 0, "it is a test"))


@pytest.mark.parametrize(
    ("conditions", "taints", "why"),
    [
        ([], [], "n1: no Ready condition yet"),
        (STARTING, [], "n1: cni plugin"),
        ([{"type": "Ready", "status": "Unknown"}], [], "n1: not ready"),
        (READY, LATE, "n1: still tainted with node.kubernetes.io/not-ready"),
    ],
)
@pytest.mark.usefixtures("short")
def test_why_a_node_takes_no_pods_yet_is_told(conditions: list[Object], taints: list[Object], why: str) -> None:
    with pytest.raises(WaitTimeout, match=f"0 of 1 nodes; {why}"):
        nodes.wait_until_usable(kube(node(conditions, taints)), ["n1"])


@pytest.mark.usefixtures("short")
def test_a_node_that_is_not_there_is_told() -> None:
    with pytest.raises(WaitTimeout, match="1 of 2 nodes; n2: not registered"):
        nodes.wait_until_usable(kube(node(READY)), ["n1", "n2"])


@pytest.mark.usefixtures("short")
def test_a_taint_that_is_somebodys_will_is_not_waited_for() -> None:
    nodes.wait_until_usable(kube(node(READY, [{"key": "vendor.example/gpu", "effect": "NoSchedule"}])), ["n1"])


@pytest.mark.usefixtures("short")
def test_a_ready_node_need_not_have_lost_its_taint() -> None:
    nodes.wait_until_ready(kube(node(READY, LATE)), ["n1"])

    with pytest.raises(WaitTimeout, match="n1: cni plugin"):
        nodes.wait_until_ready(kube(node(STARTING)), ["n1"])


class Clock:
    """Time that passes only while somebody sleeps."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("hold", "seen"), [(0, False), (1, True)])
def test_a_taint_that_comes_late_is_waited_out_where_usable_has_to_hold(
    monkeypatch: pytest.MonkeyPatch, hold: float, seen: bool
) -> None:
    monkeypatch.setattr(waiting, "time", Clock())
    late = node(READY, LATE)
    api = Changing(node(STARTING), node(READY), late, node(READY))

    nodes.wait_until_usable(cast("Kube", api), ["n1"], hold=hold)

    assert (late not in api.answers) is seen
