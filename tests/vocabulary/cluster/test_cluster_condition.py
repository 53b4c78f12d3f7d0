"""What a disruptive test may leave behind, and what of it is noticed; and what a killed worker leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from testbed.errors import UsageError, WaitTimeout
from testbed.kube.ownership import PROCESS
from testbed.vocabulary.cluster.cluster_condition import condition, differences, wait_until_restored
from testbed.vocabulary.orphaned_objects import delete_orphans
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World
from tests.fakes import cluster
from tests.fakes.kube import FakeKube

READY: Any = {"conditions": [{"type": "Ready", "status": "True"}]}


@pytest.fixture
def world() -> World:
    made = cluster.make()
    kube: Any = made.kube
    for node in cluster.NODES:
        made.kube.objects["Node", "default", node]["status"].update(READY)
        labels = dict(pair.split("=") for pair in made.driver_file.pods.selector.split(","))
        namespace = made.driver_file.pods.namespace
        pod = made.kube.put("Pod", f"driver-{node}", namespace, metadata={"labels": labels}, spec={"nodeName": node})
        pod["status"] = {**READY, "phase": "Running"}
    return World(made.owner, kube, made.driver_file, cluster.driver_path().parents[1] / "suites", "image", "run-gw0")


def _kube(world: World) -> FakeKube:
    kube: Any = world.kube
    return kube  # type: ignore[no-any-return]  # it is what the fixture put there


def _node_away(kube: FakeKube) -> None:
    kube.objects["Node", "default", "node-1"]["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]


def _driver_away(kube: FakeKube) -> None:
    kube.objects.pop(next(key for key in kube.objects if key[2] == "driver-node-2"))


def _device_away(kube: FakeKube) -> None:
    kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]["devices"].pop()


def _device_more(kube: FakeKube) -> None:
    kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]["devices"].append({"name": "gpu-9"})


def _claim(kube: FakeKube) -> None:
    kube.put("ResourceClaim", "mine", "somewhere", status={"allocation": {"devices": {}}})


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_node_away, "node not Ready node-1"),
        (_driver_away, "no ready pod of the driver on node-2"),
        (_device_away, "device not published any more: node-1/gpu-3"),
        (_device_more, "device published in addition: node-1/gpu-9"),
        (_claim, "claim still allocated: somewhere/mine"),
    ],
)
def test_what_is_left_is_named(world: World, spoil: Callable[[FakeKube], None], said: str) -> None:
    before = condition(world)
    assert before.ready_nodes == before.ready_drivers == set(cluster.NODES)
    spoil(_kube(world))
    assert differences(before, condition(world)) == [said]


def test_what_was_there_before_is_nobodys_fault(world: World) -> None:
    _node_away(_kube(world))
    _claim(_kube(world))
    assert differences(condition(world), condition(world)) == []


def test_what_others_allocate_meanwhile_was_not_left_by_the_test(world: World) -> None:
    _kube(world).put("Namespace", "team-a")
    before = condition(world)
    _kube(world).put("ResourceClaim", "training", "team-a", status={"allocation": {"devices": {}}})
    assert differences(before, condition(world)) == []


def test_a_namespace_that_stands_is_told_and_one_that_is_deleted_is_not(world: World) -> None:
    before = condition(world)
    with new_scenario(world, "T-001") as scenario:
        assert differences(before, condition(world)) == [f"namespace left: {scenario.namespace}"]
    wait_until_restored(world, before)


def test_a_cluster_that_does_not_come_back_is_our_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.waiting._patience", 0.001)
    before = condition(world)
    _device_away(_kube(world))
    with pytest.raises(WaitTimeout, match="node-1/gpu-3"):
        wait_until_restored(world, before)


def test_what_a_killed_worker_made_is_deleted_and_nothing_else(world: World) -> None:
    with new_scenario(world, "T-001") as dead, new_scenario(replace(world, process="run-gw1"), "T-002") as alive:
        kube = _kube(world)
        assert kube.objects["Namespace", "default", dead.namespace]["metadata"]["labels"][PROCESS] == "run-gw0"
        assert delete_orphans(world.kube, world.owner, "run-gw0".__eq__) == [dead.namespace]
        assert ("Namespace", "default", alive.namespace) in kube.objects
        assert delete_orphans(world.kube, world.owner, _of_the_run) == [alive.namespace]
        assert delete_orphans(world.kube, world.owner, _of_the_run) == []


def test_a_rule_that_a_killed_worker_made_is_deleted(world: World) -> None:
    kube = _kube(world)
    mine = {"labels": {**world.owner.mark({"metadata": {}})["metadata"]["labels"], PROCESS: "run-gw0"}}
    kube.put("DeviceTaintRule", "left", metadata=mine)
    assert delete_orphans(world.kube, world.owner, "run-gw0".__eq__) == ["left"]
    assert ("DeviceTaintRule", "default", "left") not in kube.objects


def test_an_api_server_without_such_rules_has_none_of_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    known = world.kube.list

    def listed(api_version: str, kind: str, *where: Any, **selectors: str) -> Any:
        if kind == "DeviceTaintRule":
            raise UsageError("the API server has no DeviceTaintRule in resource.k8s.io/v1")
        return known(api_version, kind, *where, **selectors)

    monkeypatch.setattr(world.kube, "list", listed)
    with new_scenario(world, "T-001") as dead:
        assert delete_orphans(world.kube, world.owner, _of_the_run) == [dead.namespace]


def _of_the_run(process: str) -> bool:
    return process.startswith("run-")
