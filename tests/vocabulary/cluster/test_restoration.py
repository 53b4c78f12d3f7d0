"""A disruptive test broke the cluster: nodes and driver are repaired, as far as the capabilities permit."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import pytest

from testbed.errors import TestbedError
from testbed.kube.ownership import REQUIREMENT
from testbed.providers.base import Capability
from testbed.vocabulary.cluster.cluster_condition import current_condition
from testbed.vocabulary.cluster.restoration import check_restored, restore
from testbed.vocabulary.world import World
from tests.fakes import cluster
from tests.fakes.kube import FakeKube

READY: Any = {"conditions": [{"type": "Ready", "status": "True"}]}
_DRIVER_AND_NODES = {Capability.CHANGE_DRIVER, Capability.REBOOT_NODE}


@dataclass(frozen=True)
class Cluster(cluster.FakeCluster):
    kube: Any = None
    done: list[str] = field(default_factory=list)

    def reboot(self, node: str) -> None:
        self.done.append(f"reboot {node}")
        self.kube.objects["Node", "default", node]["status"].update(READY)

    def reset_node(self, node: str) -> None:
        self.done.append(f"reset {node}")
        cluster._publish(self.kube, node, cluster.DEVICES_PER_NODE, "")

    def stop_kubelet(self, node: str) -> None:
        self.done.append(f"stop {node}")

    def start_kubelet(self, node: str) -> None:
        self.done.append(f"start {node}")
        self.kube.objects["Node", "default", node]["status"].update(READY)


def _world(*able: Capability) -> tuple[World, Any, Cluster]:
    made = cluster.make()
    kube: Any = made.kube
    labels = dict(pair.split("=") for pair in made.driver_file.pods.selector.split(","))
    for node in cluster.NODES:
        kube.objects["Node", "default", node]["status"].update(READY)
        spec = {"nodeName": node, "containers": []}
        pod = kube.put("Pod", f"driver-{node}", made.driver_file.pods.namespace, metadata={"labels": labels}, spec=spec)
        pod["status"] = {**READY, "phase": "Running"}
    whole = copy.deepcopy({key: each for key, each in kube.objects.items() if key[0] in ("Pod", "ResourceSlice")})

    def replace_driver(it: FakeKube) -> None:
        """Act as the DaemonSet and the driver: pods that are gone come back, and publish their devices again."""
        for key, each in whole.items():
            if key[0] == "Pod" and key not in it.objects:
                it.objects.update(copy.deepcopy({k: v for k, v in whole.items() if k[0] == "ResourceSlice"}))
                it.objects[key] = copy.deepcopy(each)

    kube.react = replace_driver
    made_cluster: Any = Cluster(capabilities=frozenset(able), kube=kube)
    driver_file = made.driver_file.model_copy(
        update={"spec": made.driver_file.spec.model_copy(update={"control": None})}
    )
    return (
        World(made.owner, kube, driver_file, cluster.driver_path().parent, "image", cluster=made_cluster),
        kube,
        made_cluster,
    )


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.waiting._patience", 0.001)


def test_a_driver_whose_devices_are_gone_is_restarted() -> None:
    world, kube, _ = _world(Capability.CHANGE_DRIVER)
    before = current_condition(world)
    kube.objects.pop(("ResourceSlice", "default", "slice-node-1"))
    restore(world, before)
    assert kube.deleted == ["Pod/driver-node-1", "Pod/driver-node-2"]
    check_restored(world, before)


def test_the_nodes_of_a_driver_that_does_not_recover_are_reset() -> None:
    world, kube, made = _world(Capability.CHANGE_DRIVER, Capability.RESET_NODE)
    kube.react = lambda _: None
    before = current_condition(world)
    kube.objects.pop(("ResourceSlice", "default", "slice-node-1"))
    with pytest.raises(TestbedError, match="no ready pod of the driver"):  # the pods do not come back here
        restore(world, before)
    assert made.done == ["reset node-1", "reset node-2"]
    assert current_condition(world).devices == before.devices


@pytest.mark.parametrize(
    ("able", "done"),
    [
        ([Capability.REBOOT_NODE, Capability.RESTART_KUBELET], ["reboot node-2"]),
        ([Capability.RESTART_KUBELET], ["stop node-2", "start node-2"]),
    ],
)
def test_a_node_that_is_not_ready_is_restarted(able: list[Capability], done: list[str]) -> None:
    world, kube, made = _world(*able)
    before = current_condition(world)
    kube.objects["Node", "default", "node-2"]["status"]["conditions"] = []
    restore(world, before)
    assert made.done == done
    assert kube.deleted == []


def test_nothing_is_changed_or_waited_for_without_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.waiting._patience", 1000)
    world, kube, made = _world()
    before = current_condition(world)
    kube.objects["Node", "default", "node-2"]["status"]["conditions"] = []
    kube.objects.pop(("ResourceSlice", "default", "slice-node-1"))
    with pytest.raises(TestbedError, match="node not Ready: node-2"):
        restore(world, before)
    assert (made.done, kube.deleted) == ([], [])


def test_a_namespace_that_was_left_behind_is_emptied_and_deleted() -> None:
    world, kube, _ = _world(*_DRIVER_AND_NODES)
    before = current_condition(world)
    kube.objects.update({("Namespace", "default", "left"): _marked(world, "Namespace", "left")})
    kube.put("Pod", "stuck", "left", spec={"containers": []})
    restore(world, before)
    assert kube.deleted == ["Pod/stuck", "Namespace/left"]


def _marked(world: World, kind: str, name: str) -> Any:
    made = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}}
    return world.owner.mark(made, **{REQUIREMENT: "T-001"})
