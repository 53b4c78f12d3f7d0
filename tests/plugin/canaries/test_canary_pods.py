"""Canary pods on an API server in memory, with controllers, scheduler and kubelet that do their part or not."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from testbed.errors import ApiError
from testbed.plugin.canaries.findings import failed_components
from testbed.plugin.canaries.health import observe
from testbed.plugin.canaries.pods import Canaries
from tests.fakes import cluster
from tests.fakes.kube import FakeKube

_PARTS = ("controller-manager", "scheduler", "kubelet", "dra")


class Cluster:
    """A cluster in which some parts do nothing."""

    def __init__(self, *, without: Collection[str] = ()) -> None:
        self.parts = [each for each in _PARTS if each not in without]
        self.kube: Any = FakeKube(self.step)
        self.kube.put("Node", "node-1", status={"conditions": [{"type": "Ready", "status": "True"}]})

    def step(self, kube: FakeKube) -> None:
        for (kind, namespace, name), each in list(kube.objects.items()):
            if kind == "Namespace" and "controller-manager" in self.parts:
                kube.put("ServiceAccount", "default", name)
            if kind == "Pod":
                self._pod(kube, namespace, each)

    def _pod(self, kube: FakeKube, namespace: str, pod: Any) -> None:
        has_claim, status = "resourceClaims" in pod["spec"], pod.setdefault("status", {})
        if has_claim and "controller-manager" in self.parts:
            status["resourceClaimStatuses"] = [{"name": "device", "resourceClaimName": "generated"}]
        if "scheduler" in self.parts and (not has_claim or status.get("resourceClaimStatuses")):
            pod["spec"]["nodeName"] = "node-1"
        if "kubelet" in self.parts and pod["spec"].get("nodeName") and not has_claim:
            status["phase"] = "Running"
        if "kubelet" in self.parts and "dra" in self.parts and has_claim and pod["spec"].get("nodeName"):
            about = {"kind": "Pod", "name": pod["metadata"]["name"]}
            kube.put("Event", "e", namespace, reason="FailedPrepareDynamicResources", message="…", involvedObject=about)

    def failed(self, *, with_claims: bool = True) -> list[str]:
        canaries = Canaries(self.kube, cluster.OWNER, "image", "run-canary")
        made: Any = cluster.FakeCluster()
        return [str(each) for each in failed_components(observe(made, canaries, ["node-1"], with_claims=with_claims))]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.waiting._patience", 0.001)


@pytest.mark.parametrize("with_claims", [True, False])
def test_nothing_has_failed_where_all_parts_work(with_claims: bool) -> None:
    made = Cluster()
    assert made.failed(with_claims=with_claims) == []
    kinds = {kind for kind, _, _ in made.kube.applied}
    assert ("ResourceSlice" in kinds) is with_claims
    assert {kind for kind, _, _ in made.kube.objects} <= {"Node", "ServiceAccount", "Event", "ResourceClaimTemplate"}


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ("controller-manager", ["kube-controller-manager"]),
        ("scheduler", ["kube-scheduler"]),
        ("kubelet", ["containerd on node-1"]),
        ("dra", ["kubelet on node-1"]),
    ],
)
def test_the_part_that_does_nothing_is_named(part: str, named: list[str]) -> None:
    assert Cluster(without=[part]).failed() == named


def test_an_api_server_that_does_not_answer_is_named() -> None:
    made = Cluster()
    made.kube.down = True
    assert made.failed() == ["kube-apiserver"]


@pytest.mark.parametrize("kind", ["Namespace", "Pod", "ResourceSlice"])
def test_refused_canaries_show_nothing(kind: str) -> None:
    made = Cluster()

    def refuse(manifest: Any) -> None:
        if manifest["kind"] == kind:
            raise ApiError(f"POST {kind}", 403, "Forbidden", "not here")

    made.kube.refuse = refuse
    assert made.failed() == []


def test_a_node_without_room_for_canaries_shows_nothing() -> None:
    made = Cluster(without=["scheduler"])
    full = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "1 Too many pods"}
    report = made.step

    def step(kube: FakeKube) -> None:
        report(kube)
        for (kind, _, _), each in kube.objects.items():
            if kind == "Pod":
                each["status"]["conditions"] = [full]

    made.kube.react = step
    assert made.failed() == []
