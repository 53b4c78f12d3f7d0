"""Reading Node objects and waiting for nodes, with API answers that change."""

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
    """An API that returns the next answer for each list of nodes, and repeats the last one."""

    def __init__(self, *answers: Object) -> None:
        self.answers = list(answers)

    def list(self, *_: Any) -> Sequence[Object]:
        return [self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]]


def kube(*answers: Object) -> Kube:
    return cast("Kube", Changing(*answers))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a budget that ends at once."""
    monkeypatch.setattr(nodes, "_NODES", Budget("nodes ready", 0, "it is a test"))


@pytest.mark.parametrize(
    ("conditions", "taints", "why"),
    [
        ([], [], "n1: no Ready condition yet"),
        (STARTING, [], "n1: cni plugin"),
        ([{"type": "Ready", "status": "Unknown"}], [], "n1: not ready"),
        (READY, LATE, "n1: has the taint node.kubernetes.io/not-ready"),
    ],
)
@pytest.mark.usefixtures("short")
def test_the_reason_why_a_node_is_unusable_is_reported(
    conditions: list[Object], taints: list[Object], why: str
) -> None:
    with pytest.raises(WaitTimeout, match=f"0 of 1 nodes; {why}"):
        nodes.wait_until_usable(kube(node(conditions, taints)), ["n1"])


@pytest.mark.usefixtures("short")
def test_a_missing_node_is_reported() -> None:
    with pytest.raises(WaitTimeout, match="1 of 2 nodes; n2: not registered"):
        nodes.wait_until_usable(kube(node(READY)), ["n1", "n2"])


@pytest.mark.usefixtures("short")
def test_taints_of_administrators_are_not_waited_for() -> None:
    nodes.wait_until_usable(kube(node(READY, [{"key": "vendor.example/gpu", "effect": "NoSchedule"}])), ["n1"])


@pytest.mark.usefixtures("short")
def test_a_ready_node_may_still_have_its_taint() -> None:
    nodes.wait_until_ready(kube(node(READY, LATE)), ["n1"])

    with pytest.raises(WaitTimeout, match="n1: cni plugin"):
        nodes.wait_until_ready(kube(node(STARTING)), ["n1"])


class Clock:
    """A clock that advances only by sleeping."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("hold", "seen"), [(0, False), (1, True)])
def test_a_late_taint_is_waited_out_if_usable_must_hold(
    monkeypatch: pytest.MonkeyPatch, hold: float, seen: bool
) -> None:
    monkeypatch.setattr(waiting, "time", Clock())
    late = node(READY, LATE)
    api = Changing(node(STARTING), node(READY), late, node(READY))

    nodes.wait_until_usable(cast("Kube", api), ["n1"], hold=hold)

    assert (late not in api.answers) is seen
