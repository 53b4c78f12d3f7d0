from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from testbed.drivers.changed_daemonsets import UNDO, undo_all
from testbed.errors import DriverFailed, UsageError, WaitTimeout
from testbed.kube.ownership import Owner
from testbed.vocabulary.driver.daemon import Daemon, restored_driver
from testbed.vocabulary.world import World
from tests.fakes import cluster

NAMESPACE = "dra-testbed-driver"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
SPEC: Any = {
    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
    "template": {"metadata": {"annotations": {"a": "b"}}, "spec": {"containers": [{"name": "driver"}]}},
}


class Controller:
    """A fake DaemonSet controller, which does nothing while `is_stopped`."""

    def __init__(self, kube: Any, spec: Any = SPEC) -> None:
        self.made = 0
        self.is_stopped, self.status = False, READY
        kube.put("DaemonSet", "driver", NAMESPACE, metadata={"uid": "ds"}, spec=copy.deepcopy(spec))
        kube.react = self.step
        self.template = copy.deepcopy(spec["template"])
        self.step(kube)

    def step(self, kube: Any) -> None:
        spec = kube.objects["DaemonSet", NAMESPACE, "driver"]["spec"]
        for node in [] if self.is_stopped else cluster.NODES:
            here = [key for key, each in kube.objects.items() if key[0] == "Pod" and each["spec"]["nodeName"] == node]
            if not self.is_wanted(spec, node) or self.is_new(spec):
                for key in here:
                    del kube.objects[key]
                here = []
            if not here and self.is_wanted(spec, node):
                self.put(kube, node)
        self.template = copy.deepcopy(spec["template"])

    def is_wanted(self, spec: Any, node: str) -> bool:
        affinity = spec["template"]["spec"].get("affinity", {}).get("nodeAffinity", {})
        terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [{}])
        return not all(node in each["values"] for term in terms for each in term.get("matchFields", [{"values": ()}]))

    def is_new(self, spec: Any) -> bool:
        return bool(spec["updateStrategy"]["type"] == "RollingUpdate" and spec["template"] != self.template)

    def put(self, kube: Any, node: str) -> None:
        self.made += 1
        metadata = {
            "uid": str(self.made),
            "labels": {"app": "fake-gpu-driver"},
            "ownerReferences": [{"kind": "DaemonSet", "name": "driver"}],
        }
        kube.put(
            "Pod", f"driver-{self.made}", NAMESPACE, metadata=metadata, spec={"nodeName": node}, status=self.status
        )


@pytest.fixture
def daemon(world: Callable[..., World]) -> Callable[..., tuple[Daemon, Controller]]:
    def make(spec: Any = SPEC) -> tuple[Daemon, Controller]:
        here = world()
        return Daemon(here), Controller(here.kube, spec)

    return make


def _nodes(daemon: Daemon) -> dict[str, str]:
    pods = daemon.world.kube.list("v1", "Pod", NAMESPACE)
    return {pod["spec"]["nodeName"]: pod["metadata"]["name"] for pod in pods}


def _spec(daemon: Daemon) -> Any:
    kube: Any = daemon.world.kube
    return kube.objects["DaemonSet", NAMESPACE, "driver"]["spec"]


def test_a_restart_replaces_the_pod_on_a_node(daemon: Callable[..., tuple[Daemon, Controller]]) -> None:
    pods, _ = daemon()
    pods.restart("node-1")
    assert _nodes(pods) == {"node-1": "driver-3", "node-2": "driver-2"}


def test_a_driver_is_killed_on_one_node(daemon: Callable[..., tuple[Daemon, Controller]]) -> None:
    pods, _ = daemon()
    pods.kill_on("node-1")
    assert _nodes(pods) == {"node-1": "driver-3", "node-2": "driver-2"}


def test_a_pod_that_is_not_removed_does_not_blame_the_driver(daemon: Callable[..., tuple[Daemon, Controller]]) -> None:
    pods, controller = daemon()
    controller.is_stopped = True
    with pytest.raises(WaitTimeout, match=r"gone from node-1(.|\n)*still there: driver-1"):
        pods.stop_on("node-1")


def test_a_driver_that_does_not_become_ready_again_is_blamed(daemon: Callable[..., tuple[Daemon, Controller]]) -> None:
    pods, controller = daemon()
    controller.status = {"phase": "Running", "conditions": []}
    with pytest.raises(DriverFailed, match=r"on node-1, node-2 to be ready again(.|\n)*driver-3 is Running"):
        pods.restart("node-1")


@pytest.mark.parametrize(
    "affinity",
    [
        {},
        {"podAffinity": {}},
        {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}, {}]}}},
    ],
)
def test_a_driver_is_stopped_on_one_node_and_started_again(
    daemon: Callable[..., tuple[Daemon, Controller]], affinity: Any
) -> None:
    spec = copy.deepcopy(SPEC)
    if affinity:
        spec["template"]["spec"]["affinity"] = affinity
    pods, _ = daemon(spec)
    pods.stop_on("node-1")
    assert _nodes(pods) == {"node-2": "driver-2"}
    pods.start_again()
    assert _nodes(pods)["node-1"] == "driver-3"
    assert _spec(pods) == spec
    assert pods.kept == {}


def test_another_process_starts_a_driver_again_that_a_killed_test_stopped(
    daemon: Callable[..., tuple[Daemon, Controller]],
) -> None:
    pods, _ = daemon()
    kube, owner = pods.world.kube, pods.world.owner
    pods.stop_on("node-1")
    assert undo_all(kube, Owner(owner.testbed, "another-one")) == []
    assert undo_all(kube, owner) == ["driver"]
    assert _spec(pods) == SPEC
    assert undo_all(kube, owner) == []


def test_an_update_by_the_user_survives_when_a_driver_is_started_again(
    daemon: Callable[..., tuple[Daemon, Controller]],
) -> None:
    pods, _ = daemon()
    pods.stop_on("node-1")
    _spec(pods)["template"]["spec"]["containers"] = [{"name": "newer"}]
    undo_all(pods.world.kube, pods.world.owner)
    assert _spec(pods) == {**SPEC, "template": {**SPEC["template"], "spec": {"containers": [{"name": "newer"}]}}}


def test_an_annotation_of_others_changes_only_on_which_nodes_pods_run(
    daemon: Callable[..., tuple[Daemon, Controller]],
) -> None:
    pods, _ = daemon()
    kube: Any = pods.world.kube
    pods.stop_on("node-1")
    forged = {"template": {"spec": {"affinity": None, "hostPID": True}, "metadata": {"labels": {"a": "b"}}}}
    annotation = json.dumps({"testbed": pods.world.owner.identity, "spec": {**forged, "paused": True}})
    kube.objects["DaemonSet", NAMESPACE, "driver"]["metadata"]["annotations"][UNDO] = annotation
    assert undo_all(kube, pods.world.owner) == ["driver"]
    assert _spec(pods) == {**SPEC, "updateStrategy": {"type": "OnDelete"}}


def test_a_driver_is_started_again_after_a_test_that_failed(daemon: Callable[..., tuple[Daemon, Controller]]) -> None:
    pods, _ = daemon()
    with pytest.raises(AssertionError, match="in the middle"):
        _fail_in_the_middle(pods.world)
    assert sorted(_nodes(pods)) == ["node-1", "node-2"]


def _fail_in_the_middle(world: World) -> None:
    with restored_driver(world) as daemon:
        daemon.stop_on("node-2")
        assert sorted(_nodes(daemon)) == ["node-1", "node-2"], "in the middle"


def test_an_update_replaces_all_pods(daemon: Callable[..., tuple[Daemon, Controller]]) -> None:
    pods, _ = daemon()
    pods.update()
    assert _nodes(pods) == {"node-1": "driver-3", "node-2": "driver-4"}
    assert set(_spec(pods)["template"]["metadata"]["annotations"]) == {"a", "kubectl.kubernetes.io/restartedAt"}


def test_an_update_that_does_not_complete_blames_the_driver(
    daemon: Callable[..., tuple[Daemon, Controller]],
) -> None:
    pods, controller = daemon()
    controller.is_stopped = True
    with pytest.raises(
        DriverFailed, match=r"update of the driver(.|\n)*waited: driver's pods: 0.18 s"
    ):  # for two nodes
        pods.update()


def test_a_daemonset_whose_pods_are_all_terminating_is_updated(
    daemon: Callable[..., tuple[Daemon, Controller]],
) -> None:
    pods, _ = daemon()
    kube: Any = pods.world.kube
    old = pods.start_update()  # without surge on one node, there is no other pod now
    for key in [key for key in kube.objects if key[0] == "Pod"]:
        kube.objects[key]["metadata"]["deletionTimestamp"] = "2026-11-20T00:00:00Z"
    pods.stop_on("node-2")
    pods.start_again()
    pods.should_be_updated(old)
    assert sorted(_nodes(pods)) == ["node-1", "node-2"]


def test_a_restart_and_an_update_say_how_long_they_took(daemon: Callable[..., tuple[Daemon, Controller]]) -> None:
    pods, _ = daemon()
    assert 0 < pods.restart("node-1") < 30
    assert 0 < pods.update() < 30


BY_HAND: Any = {**SPEC, "updateStrategy": {"type": "OnDelete"}}


def test_an_update_with_on_delete_replaces_one_pod_after_another(
    daemon: Callable[..., tuple[Daemon, Controller]],
) -> None:
    pods, controller = daemon(BY_HAND)
    old = pods.start_update()
    assert _nodes(pods) == {"node-1": "driver-3", "node-2": "driver-2"}
    pods.should_be_updated(old)
    assert _nodes(pods) == {"node-1": "driver-3", "node-2": "driver-4"}
    assert controller.made == 4
    assert _spec(pods)["updateStrategy"] == {"type": "OnDelete"}


def test_an_update_with_on_delete_stops_at_a_pod_that_does_not_become_ready(
    daemon: Callable[..., tuple[Daemon, Controller]],
) -> None:
    pods, controller = daemon(BY_HAND)
    controller.status = {"phase": "Running", "conditions": []}
    with pytest.raises(DriverFailed, match="to be ready again"):
        pods.update()
    assert _nodes(pods) == {"node-1": "driver-3", "node-2": "driver-2"}


def test_a_driver_without_a_daemonset_is_an_error(world: Callable[..., World]) -> None:
    with pytest.raises(UsageError, match="belong to no DaemonSet"):
        Daemon(world()).stop_on("node-1")
