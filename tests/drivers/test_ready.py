from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from testbed.drivers import expected_nodes, keep_expected_nodes, ready, wait_ready
from testbed.drivers.published.taints import is_own_taint, untolerated_taints
from testbed.errors import ApiError, DriverFailed, UsageError, WaitTimeout
from testbed.models.driver_file import DriverFile, load_driver_file
from testbed.models.driver_sections import Toleration
from testbed.waiting import set_patience
from tests.fakes import cluster
from tests.fakes.driver_files import with_values
from tests.fakes.kube import FakeKube

FILE = load_driver_file(cluster.driver_path())
GPU_ONLY = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def _kube(*ready: str, **statuses: Any) -> Any:
    """Return a cluster whose nodes have these driver pods, with slices on every node."""
    kube = cluster.make().kube
    for node, status in {**dict.fromkeys(ready, READY), **statuses}.items():
        _pod(kube, node.replace("_", "-"), status)
    return kube


def _pod(kube: FakeKube, node: str, status: Any, **metadata: Any) -> None:
    labels = {"labels": {"app": "fake-gpu-driver"}, **metadata}
    kube.put("Pod", f"driver-{node}", "dra-testbed-driver", spec={"nodeName": node}, status=status, metadata=labels)


def _state(**state: Any) -> Any:
    return {"phase": "Pending", "containerStatuses": [{"name": "driver", "state": state, "ready": False}]}


def test_a_driver_with_pods_and_slices_on_every_node_is_ready() -> None:
    wait_ready(_kube("node-1", "node-2"), FILE)


def test_nodes_with_taints_are_not_expected() -> None:
    kube = _kube()
    kube.put("Node", "control-plane", spec={"taints": [{"key": "x", "effect": "NoSchedule"}]})
    assert expected_nodes(kube, FILE) == {"node-1", "node-2"}


def _taint(kube: FakeKube, node: str, key: str) -> None:
    kube.objects["Node", "default", node]["spec"]["taints"] = [{"key": key, "effect": "NoSchedule"}]


def test_a_node_that_the_driver_taints_or_leaves_out_after_its_installation_stays_expected() -> None:
    kube = _kube("node-1")
    kept = keep_expected_nodes(kube, [FILE])
    _taint(kube, "node-2", "x")
    assert expected_nodes(kube, FILE, kept) == {"node-1", "node-2"}
    with pytest.raises(WaitTimeout, match="node-2: no pod of the driver"):
        wait_ready(kube, FILE, expected_nodes(kube, FILE, kept))


def test_a_driver_file_that_selects_other_nodes_does_not_use_the_nodes_that_were_kept() -> None:
    kube = _kube()
    kube.put("Node", "node-3", spec={}, metadata={"labels": {"gpu": "yes"}})
    wanted = FILE.model_copy(update={"spec": FILE.spec.model_copy(update={"nodes": _selector(gpu="yes")})})
    assert expected_nodes(kube, wanted, keep_expected_nodes(kube, [FILE])) == {"node-3"}


@pytest.mark.parametrize(
    ("key", "is_own"),
    [
        (f"{FILE.driver}/unhealthy", True),
        ("dra-testbed.example/unhealthy", True),
        (f"node.{FILE.driver}/unhealthy", True),
        ("other.example/unhealthy", False),
        ("testbed.example/unhealthy", False),
        ("example/unhealthy", False),
        ("unhealthy", False),
    ],
)
def test_taints_in_the_domain_of_a_driver_that_is_installed_already_are_ignored(key: str, is_own: bool) -> None:
    kube = _kube()
    _taint(kube, "node-2", key)
    installed = FILE.model_copy(update={"spec": FILE.spec.model_copy(update={"install": None})})
    (kept,) = keep_expected_nodes(kube, [installed]).values()
    assert ("node-2" in kept) is is_own
    assert ("node-2" in expected_nodes(kube, FILE)) is is_own
    (before,) = keep_expected_nodes(kube, [FILE]).values()
    assert before == ["node-1"], "before we install the driver, such a taint is the administrator's"


@pytest.mark.parametrize(("key", "driver"), [("kubernetes.io/x", "gpu.kubernetes.io"), ("k8s.io/x", "gpu.k8s.io")])
def test_a_taint_of_kubernetes_is_no_taint_of_a_driver(key: str, driver: str) -> None:
    assert not is_own_taint(key, driver)


def test_only_the_nodes_of_the_selector_are_expected() -> None:
    kube = _kube()
    kube.put("Node", "node-3", spec={}, metadata={"labels": {"gpu": "yes"}})
    wanted = FILE.model_copy(update={"spec": FILE.spec.model_copy(update={"nodes": _selector(gpu="yes")})})
    assert expected_nodes(kube, wanted) == {"node-3"}


def test_only_nodes_with_the_labels_that_the_driver_needs_are_expected() -> None:
    kube = _kube()
    kube.put("Node", "node-3", spec={}, metadata={"labels": {"gpu": "yes", "zone": "a"}})
    kube.put("Node", "node-4", spec={}, metadata={"labels": {"gpu": "yes"}})
    nodes = _selector(gpu="yes").model_copy(update={"labels": {"zone": "a"}})
    assert expected_nodes(kube, FILE.model_copy(update={"spec": FILE.spec.model_copy(update={"nodes": nodes})})) == {
        "node-3"
    }


def _selector(**labels: str) -> Any:
    return FILE.nodes.model_copy(update={"selector": labels})


def test_a_node_without_a_pod_is_named() -> None:
    with pytest.raises(WaitTimeout, match="node-2: no pod of the driver"):
        wait_ready(_kube("node-1"), FILE)


def test_a_pod_that_is_being_deleted_does_not_count() -> None:
    kube = _kube("node-1")
    _pod(kube, "node-2", READY, deletionTimestamp="now")
    with pytest.raises(WaitTimeout, match="node-2: no pod of the driver"):
        wait_ready(kube, FILE)


def test_a_node_without_slices_is_named() -> None:
    kube = _kube("node-1", "node-2")
    del kube.objects["ResourceSlice", "default", "slice-node-2"]
    with pytest.raises(DriverFailed, match="no ResourceSlice for node-2"):
        wait_ready(kube, FILE)


def test_an_incomplete_pool_is_not_ready() -> None:
    kube = _kube("node-1", "node-2")
    kube.put("ResourceSlice", "slice-node-2", spec=cluster.slice_spec("node-2", 1, resourceSliceCount=2))
    with pytest.raises(DriverFailed, match="pool node-2: 1 of 2 slices of generation 1"):
        wait_ready(kube, FILE)


def _with_only_the_network() -> Any:
    kube = _kube("node-1", "node-2")
    for node in cluster.NODES:
        del kube.objects["ResourceSlice", "default", f"slice-{node}"]
    spec = {key: value for key, value in cluster.slice_spec("net", 1).items() if key != "nodeName"}
    kube.put("ResourceSlice", "net", spec={**spec, "allNodes": True})
    return kube


def _network_attached() -> DriverFile:
    return with_values(FILE, "devices", belong_to="network")


def test_network_attached_devices_are_enough_for_a_driver_without_others() -> None:
    wait_ready(_with_only_the_network(), _network_attached())


def test_a_driver_of_network_attached_devices_must_publish_some() -> None:
    kube = _with_only_the_network()
    del kube.objects["ResourceSlice", "default", "net"]
    with pytest.raises(DriverFailed, match="no ResourceSlice for network-attached devices"):
        wait_ready(kube, _network_attached())


def test_network_attached_devices_do_not_replace_those_of_nodes() -> None:
    """Either may be published first, and whether the driver or its file is wrong is unknown here."""
    expected = "no ResourceSlice for node-1, node-2, only for network-attached devices"
    with pytest.raises(WaitTimeout, match=expected) as raised:
        wait_ready(_with_only_the_network(), FILE)
    assert "spec.devices.belongTo: network" in raised.value.hint


def test_a_node_without_slices_is_named_next_to_network_attached_devices() -> None:
    kube = _with_only_the_network()
    kube.put("ResourceSlice", "slice-node-1", spec=cluster.slice_spec("node-1", 1))
    with pytest.raises(
        DriverFailed, match=r"last seen: the pods are Ready, but there is no ResourceSlice for node-2\s"
    ):
        wait_ready(kube, FILE)


def test_a_missing_image_does_not_blame_the_driver_and_has_a_hint() -> None:
    status = _state(waiting={"reason": "ErrImageNeverPull", "message": "not present"})
    with pytest.raises(WaitTimeout, match="container driver ErrImageNeverPull not present") as raised:
        wait_ready(_kube("node-1", node_2=status), FILE)
    assert "registry" in raised.value.hint
    assert "spec.install.images" in raised.value.hint


@pytest.mark.parametrize(
    "state",
    [{"waiting": {"reason": "ContainerCreating"}}, {"waiting": {"reason": "PodInitializing"}}, {"running": {}}],
    ids=str,
)
def test_the_hint_for_a_starting_pod_is_patience(state: Any) -> None:
    with pytest.raises(WaitTimeout) as raised:
        wait_ready(_kube("node-1", node_2=_state(**state)), FILE)
    assert "--patience 3" in raised.value.hint


def test_a_driver_that_crashes_is_blamed_with_the_end_of_its_log() -> None:
    status = _state(waiting={"reason": "CrashLoopBackOff"})
    status["containerStatuses"][0]["restartCount"] = 3
    kube = _kube("node-1", node_2=status)
    kube.log_texts["driver-node-2/driver/previous"] = "".join(f"line {n}\n" for n in range(40)) + "no such device\n"
    with pytest.raises(DriverFailed, match="no such device") as raised:
        wait_ready(kube, FILE)
    assert "line 39" in str(raised.value)
    assert "line 3\n" not in str(raised.value)


@pytest.mark.parametrize(
    "container",
    [
        {"state": {"waiting": {"reason": "CrashLoopBackOff"}}},
        {"state": {"terminated": {"exitCode": 2, "reason": "Error"}}},
        {"state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}},
    ],
)
@pytest.mark.parametrize("part", ["containerStatuses", "initContainerStatuses"])
def test_a_driver_that_crashes_without_a_log_is_blamed(container: Any, part: str) -> None:
    status = {"phase": "Pending", part: [{"name": "driver", "ready": False, "restartCount": 1, **container}]}
    with pytest.raises(
        DriverFailed, match=r"container driver of pod driver-node-2 (exited with code|is in CrashLoopBackOff)"
    ):
        wait_ready(_kube("node-1", node_2=status), FILE)


def test_an_earlier_crash_of_a_ready_pod_does_not_blame_the_driver() -> None:
    over = {"name": "driver", "ready": True, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}}
    with pytest.raises(WaitTimeout, match="node-2: no pod of the driver"):
        wait_ready(_kube(node_1={**READY, "containerStatuses": [over]}), FILE)


def test_a_completed_init_container_does_not_blame_the_driver() -> None:
    done = {"name": "init", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}, "ready": True}
    status = {"phase": "Pending", "initContainerStatuses": [done]}
    with pytest.raises(WaitTimeout):
        wait_ready(_kube("node-1", node_2=status), FILE)


def test_the_log_of_an_init_container_that_the_pod_waits_for_is_shown() -> None:
    done = {"name": "first", "state": {"terminated": {"exitCode": 0}}, "ready": True}
    runs = {"name": "wait-for-hardware", "state": {"running": {}}, "ready": False, "started": True}
    status = {"phase": "Pending", "initContainerStatuses": [done, runs]}
    kube = _kube("node-1", node_2=status)
    kube.log_texts["driver-node-2/wait-for-hardware"] = "waiting for /dev/acme0\n"
    with pytest.raises(WaitTimeout, match="waiting for /dev/acme0") as raised:
        wait_ready(kube, FILE)
    assert "log of container wait-for-hardware of driver-node-2:" in str(raised.value)


def test_slices_without_a_pod_end_the_wait_early(monkeypatch: pytest.MonkeyPatch) -> None:
    set_patience(0.01)
    monkeypatch.setattr(ready, "_READY", replace(ready._READY, minimum=60))
    kube = _kube()
    with pytest.raises(WaitTimeout, match="driver's pods are found"):
        wait_ready(kube, FILE)


@pytest.mark.parametrize("reason", ["CreateContainerError", "CreateContainerConfigError", "RunContainerError"])
def test_a_node_that_cannot_start_the_container_does_not_blame_the_driver(reason: str) -> None:
    status = _state(waiting={"reason": reason, "message": "write /run/containerd: no space left on device"})
    kube = _kube("node-1", node_2=status)
    kube.log_texts["driver-node-1/driver"] = "serving\n"
    with pytest.raises(WaitTimeout, match="no space left on device") as raised:
        wait_ready(kube, FILE)
    assert "the node could not start the container" in raised.value.hint
    assert "serving" not in str(raised.value)


def test_a_pod_without_a_status_does_not_blame_the_driver() -> None:
    kube = _kube("node-1", node_2={"phase": "Pending"})
    kube.log_texts["driver-node-1/driver"] = "serving\n"
    with pytest.raises(WaitTimeout, match="driver-node-2 is Pending: not Ready yet") as raised:
        wait_ready(kube, FILE)
    assert raised.value.hint == "check the driver's pods"


def test_a_running_driver_that_is_not_ready_is_not_blamed() -> None:
    kube = _kube("node-1", node_2=_state(running={"startedAt": "now"}))
    kube.log_texts["driver-node-2/driver"] = "waiting for the kubelet\n"
    with pytest.raises(WaitTimeout, match="container driver is running but not ready") as raised:
        wait_ready(kube, FILE)
    assert "readiness probe" in raised.value.hint
    assert "waiting for the kubelet" in str(raised.value)


def test_a_container_that_the_runtime_cannot_start_does_not_blame_the_driver() -> None:
    status = _state(waiting={"reason": "CrashLoopBackOff"})
    never = {"exitCode": 128, "reason": "StartError", "message": "no space left on device"}
    status["containerStatuses"][0]["lastState"] = {"terminated": never}
    with pytest.raises(WaitTimeout, match=r"exited with code 128 \(StartError\): no space left on device") as raised:
        wait_ready(_kube("node-1", node_2=status), FILE)
    assert "the node could not start the container" in raised.value.hint


def test_an_unreachable_api_server_does_not_blame_the_driver() -> None:
    kube = _kube("node-1", "node-2")
    kube.down = True
    with pytest.raises(ApiError):
        wait_ready(kube, FILE)


def test_a_selector_that_matches_no_node_is_reported() -> None:
    wanted = FILE.model_copy(update={"spec": FILE.spec.model_copy(update={"nodes": _selector(no="where")})})
    with pytest.raises(UsageError, match=r"has no node to run on: no node has the labels no=where") as raised:
        wait_ready(_kube("node-1"), wanted)
    assert "spec.nodes.selector" in raised.value.hint


def test_a_cluster_without_nodes_is_reported() -> None:
    with pytest.raises(UsageError, match="no node to run on: the cluster has no nodes"):
        wait_ready(FakeKube(), FILE)  # type: ignore[arg-type]  # the fake


def test_taints_that_leave_no_node_are_reported_at_once() -> None:
    kube = _kube("node-1", "node-2")
    for node in ("node-1", "node-2"):
        kube.objects["Node", "default", node]["spec"] = {"taints": [GPU_ONLY]}
    with pytest.raises(UsageError, match="the tests' pods do not tolerate the taints of its nodes") as raised:
        wait_ready(kube, FILE)
    assert "node-1: nvidia.com/gpu=present:NoSchedule" in str(raised.value)
    assert "labels" not in str(raised.value)
    assert "spec.nodes.tolerations" in raised.value.hint


@pytest.mark.parametrize(
    ("toleration", "matches"),
    [
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu", "value": "present"}, True),
        ({"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu"}, False),
        ({"key": "nvidia.com/gpu", "value": "absent"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "amd.com/gpu", "operator": "Exists"}, False),
    ],
)
def test_a_node_is_expected_if_its_taints_are_tolerated(toleration: Any, matches: bool) -> None:
    tolerations = (Toleration.model_validate_json(json.dumps(toleration)),)
    nodes = FILE.nodes.model_copy(update={"tolerations": tolerations})
    wanted = FILE.model_copy(update={"spec": FILE.spec.model_copy(update={"nodes": nodes})})
    kube = _kube()
    kube.put("Node", "gpu-1", spec={"taints": [GPU_ONLY]})
    assert ("gpu-1" in expected_nodes(kube, wanted)) is matches


def test_every_taint_of_a_node_must_be_tolerated() -> None:
    other = {"key": "dedicated", "effect": "NoExecute"}
    tolerated = Toleration(key="nvidia.com/gpu", operator="Exists")
    assert untolerated_taints({"spec": {"taints": [GPU_ONLY, other]}}, [tolerated]) == ["dedicated:NoExecute"]
    assert untolerated_taints({"spec": {"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}}, []) == []
