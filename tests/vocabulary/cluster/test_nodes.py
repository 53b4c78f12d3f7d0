from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from testbed.errors import Blocked, WaitTimeout
from testbed.vocabulary.cluster.nodes import Node, restored_node
from testbed.vocabulary.driver.driver import Driver
from testbed.vocabulary.world import World
from tests.fakes import cluster

READY: Any = [{"type": "Ready", "status": "True"}]


class Machines:
    """A fake cluster that restarts kubelets and nodes, and changes `kube` accordingly."""

    def __init__(self, kube: Any) -> None:
        self.kube, self.asked = kube, list[str]()
        self.comes_back = self.wipes = self.is_reached = True

    def stop_kubelet(self, node: str) -> None:
        self.asked.append(f"stop {node}")
        self.kube.log_texts.clear()

    def start_kubelet(self, node: str) -> None:
        self.asked.append(f"start {node}")
        if self.wipes:
            self.kube.objects.pop(("ResourceSlice", "default", f"slice-{node}"), None)
        if self.comes_back:
            self.kube.log_texts["p/c"] = "hello"

    def stop_runtime(self, node: str) -> None:
        self.kube.log_texts.clear()
        self.asked.append(f"stop runtime of {node}")

    def start_runtime(self, node: str) -> None:
        self.asked.append(f"start runtime of {node}")
        if not self.comes_back:
            self.comes_back = True
            raise WaitTimeout("containerd", "1 s", "nothing")
        if self.is_reached:
            self.kube.log_texts["p/c"] = "hello"

    def reboot(self, node: str) -> None:
        self.asked.append(f"reboot {node}")
        if self.comes_back:
            self.kube.objects["Pod", "here", "p"]["status"]["containerStatuses"] = [_runs("new")]


@pytest.fixture
def machines(world: Callable[..., World]) -> Callable[..., tuple[World, Any]]:
    """Return a world with a pod on node-1, which is Ready."""

    def make(**labels: str) -> tuple[World, Any]:
        made = world()
        kube: Any = made.kube
        kube.react = lambda _kube: None
        kube.objects["Node", "default", "node-1"]["status"]["conditions"] = READY
        ours = dict(pair.split("=") for pair in made.owner.selector.split(","))
        spec = {"nodeName": "node-1", "containers": [{"name": "c"}]}
        status = {"containerStatuses": [_runs("old")]}
        kube.put("Pod", "p", "here", metadata={"labels": labels or ours}, spec=spec, status=status)
        return made, Machines(kube)

    return make


def _runs(container: str) -> Any:
    return {"name": "c", "containerID": container, "state": {"running": {}}}


def test_a_node_is_its_name(machines: Callable[..., tuple[World, Any]]) -> None:
    node = Node("node-1", *machines())
    assert f"{node}" == node == "node-1"
    assert len(Driver(machines()[0]).devices_on(node)) == cluster.DEVICES_PER_NODE


def test_a_started_kubelet_knows_its_pods(machines: Callable[..., tuple[World, Any]]) -> None:
    world, parts = machines()
    Node("node-1", world, parts).restart_kubelet()
    assert parts.asked == ["stop node-1", "start node-1"]
    parts.comes_back = False
    with pytest.raises(WaitTimeout, match="container c has no log"):
        Node("node-1", world, parts).restart_kubelet()


def test_a_started_kubelet_has_deleted_the_slices(
    machines: Callable[..., tuple[World, Any]],
) -> None:
    world, parts = machines()
    parts.wipes = False
    with pytest.raises(WaitTimeout, match="has not deleted the slices"):
        Node("node-1", world, parts).restart_kubelet()


def test_pods_of_others_are_ignored(machines: Callable[..., tuple[World, Any]]) -> None:
    world, parts = machines(app="somebody-elses")
    parts.comes_back = False
    Node("node-1", world, parts).restart_kubelet()
    assert parts.asked == ["stop node-1", "start node-1"]


def test_a_node_that_is_not_ready_is_waited_for(machines: Callable[..., tuple[World, Any]]) -> None:
    world, parts = machines()
    parts.kube.objects["Node", "default", "node-1"]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    with pytest.raises(WaitTimeout, match="condition Ready is False"):
        Node("node-1", world, parts).restart_kubelet()


def test_a_reboot_waits_for_the_end_of_old_containers(machines: Callable[..., tuple[World, Any]]) -> None:
    world, parts = machines()
    Node("node-1", world, parts).reboot()
    parts.comes_back = False
    with pytest.raises(WaitTimeout, match="has not yet reported that the old containers have ended"):
        Node("node-1", world, parts).reboot()
    assert parts.asked == ["reboot node-1", "reboot node-1"]


def test_the_kubelet_is_started_after_the_test(machines: Callable[..., tuple[World, Any]]) -> None:
    world, parts = machines()
    with restored_node("node-1", world, parts) as node:
        node.stop_kubelet()
    with restored_node("node-1", world, parts) as node:
        node.restart_kubelet()
    with pytest.raises(AssertionError, match="in the middle"):
        _fail_in_the_middle(world, parts)
    assert parts.asked == ["stop node-1", "start node-1"] * 3


def _fail_in_the_middle(world: World, parts: Any) -> None:
    with restored_node("node-1", world, parts) as node:
        node.stop_kubelet()
        assert not node, "in the middle"


def test_the_labels_of_a_node(machines: Callable[..., tuple[World, Any]]) -> None:
    world, cluster_ = machines()
    cluster_.kube.objects["Node", "default", "node-1"]["metadata"]["labels"] = {"kubernetes.io/hostname": "ip-10-0-0-1"}
    node = Node("node-1", world, cluster_)
    assert node.label("kubernetes.io/hostname") == "ip-10-0-0-1"
    with pytest.raises(Blocked, match="node node-1 has no label a/b"):
        node.label("a/b")


def test_a_runtime_is_restarted(machines: Callable[..., tuple[World, Any]]) -> None:
    made, found = machines()
    with restored_node("node-1", made, found) as node:
        node.restart_runtime()
    assert found.asked == ["stop runtime of node-1", "start runtime of node-1"]


def test_a_kubelet_that_does_not_reach_its_runtime_is_waited_for(
    machines: Callable[..., tuple[World, Any]],
) -> None:
    made, found = machines()
    found.is_reached = False
    with pytest.raises(WaitTimeout, match="the kubelet of node-1 to reach its container runtime"):
        Node("node-1", made, found).restart_runtime()


def test_a_runtime_that_a_failed_test_left_stopped_is_started(machines: Callable[..., tuple[World, Any]]) -> None:
    made, found = machines()
    found.comes_back = False
    with pytest.raises(WaitTimeout), restored_node("node-1", made, found) as node:
        node.restart_runtime()
    assert found.asked == ["stop runtime of node-1", *["start runtime of node-1"] * 2]


@pytest.mark.parametrize(("handlers", "name"), [(["", "runc"], "runc"), (["", "crun"], "crun")])
def test_a_handler_of_the_runtime_is_known(
    machines: Callable[..., tuple[World, Any]], handlers: list[str], name: str
) -> None:
    made, found = machines()
    kube: Any = made.kube
    node = Node("node-1", made, found)
    with pytest.raises(Blocked, match="reports no handler"):
        _ = node.runtime_handler
    kube.objects["Node", "default", "node-1"]["status"]["runtimeHandlers"] = [{"name": each} for each in handlers]
    assert node.runtime_handler == name
