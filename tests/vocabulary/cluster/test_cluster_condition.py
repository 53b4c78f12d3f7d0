"""The differences that a disruptive test may leave in a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from testbed.errors import DriverFailed, TestbedError, WaitTimeout
from testbed.vocabulary.cluster.cluster_condition import current_condition, differences, wait_until_restored
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
    return kube  # type: ignore[no-any-return]  # the fixture made it


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
    ("change", "difference"),
    [
        (_node_away, "node not Ready: node-1"),
        (_driver_away, "no ready pod of the driver on node-2"),
        (_device_away, "device no longer published: node-1/gpu-3"),
        (_device_more, "device newly published: node-1/gpu-9"),
        (_claim, "claim still allocated: somewhere/mine"),
    ],
)
def test_each_difference_is_described(world: World, change: Callable[[FakeKube], None], difference: str) -> None:
    before = current_condition(world)
    assert before.ready_nodes == before.ready_drivers == set(cluster.NODES)
    change(_kube(world))
    assert differences(before, current_condition(world)) == [difference]


def test_what_was_wrong_before_is_no_difference(world: World) -> None:
    _node_away(_kube(world))
    _claim(_kube(world))
    assert differences(current_condition(world), current_condition(world)) == []


def test_claims_that_others_allocate_are_no_difference(world: World) -> None:
    _kube(world).put("Namespace", "team-a")
    before = current_condition(world)
    _kube(world).put("ResourceClaim", "training", "team-a", status={"allocation": {"devices": {}}})
    assert differences(before, current_condition(world)) == []


def test_a_namespace_is_a_difference_until_it_is_deleted(world: World) -> None:
    before = current_condition(world)
    with new_scenario(world, "T-001") as scenario:
        assert differences(before, current_condition(world)) == [f"namespace left behind: {scenario.namespace}"]
    wait_until_restored(world, before)


@pytest.mark.parametrize(
    ("changes", "blamed"),
    [
        ([_device_away], DriverFailed),
        ([_device_more], DriverFailed),
        ([_driver_away], DriverFailed),
        ([_device_away, _node_away], WaitTimeout),
        ([_claim], WaitTimeout),
    ],
)
def test_a_driver_that_does_not_come_back_on_ready_nodes_has_failed(
    world: World, monkeypatch: pytest.MonkeyPatch, changes: list[Callable[[FakeKube], None]], blamed: type[Exception]
) -> None:
    monkeypatch.setattr("testbed.waiting._patience", 0.001)
    before = current_condition(world)
    for change in changes:
        change(_kube(world))
    with pytest.raises(TestbedError) as raised:
        wait_until_restored(world, before)
    assert type(raised.value) is blamed
    assert differences(before, current_condition(world))[0] in str(raised.value)


def test_the_message_says_why_a_pod_of_the_driver_is_not_ready(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.waiting._patience", 0.001)
    before = current_condition(world)
    pod = next(each for key, each in _kube(world).objects.items() if key[2] == "driver-node-1")
    ended = {"name": "driver", "ready": False, "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}
    pod["status"] = {"phase": "Running", "conditions": [], "containerStatuses": [ended]}
    with pytest.raises(DriverFailed, match="pod driver-node-1 is Running: container driver Error"):
        wait_until_restored(world, before)
