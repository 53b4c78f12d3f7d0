from __future__ import annotations

import json
from typing import Any

import pytest

from testbed.drivers import expected_nodes, wait_ready
from testbed.drivers.published.taints import untolerated_taints
from testbed.errors import ApiError, DriverFailed, UsageError, WaitTimeout
from testbed.models.driver_file import DriverFile, load_driver_file
from testbed.models.driver_sections import Toleration
from tests.fakes import cluster
from tests.fakes.kube import FakeKube

FILE = load_driver_file(cluster.driver_path())
GPU_ONLY = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def _kube(*ready: str, **statuses: Any) -> Any:
    """A cluster whose nodes have these driver pods, and slices on every node."""
    kube = cluster.make().kube
    for node, status in {**dict.fromkeys(ready, READY), **statuses}.items():
        _pod(kube, node.replace("_", "-"), status)
    return kube


def _pod(kube: FakeKube, node: str, status: Any, **metadata: Any) -> None:
    labels = {"labels": {"app": "fake-gpu-driver"}, **metadata}
    kube.put("Pod", f"driver-{node}", "dra-testbed-driver", spec={"nodeName": node}, status=status, metadata=labels)


def _state(**state: Any) -> Any:
    return {"phase": "Pending", "containerStatuses": [{"name": "driver", "state": state, "ready": False}]}


def test_a_driver_that_serves_on_every_node_is_ready() -> None:
    wait_ready(_kube("node-1", "node-2"), FILE)


def test_nodes_that_keep_ordinary_pods_away_are_not_expected() -> None:
    kube = _kube()
    kube.put("Node", "control-plane", spec={"taints": [{"key": "x", "effect": "NoSchedule"}]})
    assert expected_nodes(kube, FILE) == {"node-1", "node-2"}


def test_only_the_nodes_of_the_selector_are_expected() -> None:
    kube = _kube()
    kube.put("Node", "node-3", spec={}, metadata={"labels": {"gpu": "yes"}})
    wanted = FILE.model_copy(update={"spec": FILE.spec.model_copy(update={"nodes": _selector(gpu="yes")})})
    assert expected_nodes(kube, wanted) == {"node-3"}


def _selector(**labels: str) -> Any:
    return FILE.nodes.model_copy(update={"selector": labels})


def test_a_node_without_a_pod_is_named() -> None:
    with pytest.raises(WaitTimeout, match="node-2: no pod of the driver"):
        wait_ready(_kube("node-1"), FILE)


def test_a_pod_on_its_way_out_does_not_count() -> None:
    kube = _kube("node-1")
    _pod(kube, "node-2", READY, deletionTimestamp="now")
    with pytest.raises(WaitTimeout, match="node-2: no pod of the driver"):
        wait_ready(kube, FILE)


def test_a_node_without_slices_is_named() -> None:
    kube = _kube("node-1", "node-2")
    del kube.objects["ResourceSlice", "default", "slice-node-2"]
    with pytest.raises(DriverFailed, match="no ResourceSlice for node-2"):
        wait_ready(kube, FILE)


def test_half_a_pool_is_not_ready() -> None:
    kube = _kube("node-1", "node-2")
    kube.put("ResourceSlice", "slice-node-2", spec=cluster.slice_spec("node-2", 1, resourceSliceCount=2))
    with pytest.raises(DriverFailed, match="pool node-2: 1 of 2 slices of generation 1"):
        wait_ready(kube, FILE)


def _with_the_network_alone() -> Any:
    kube = _kube("node-1", "node-2")
    for node in cluster.NODES:
        del kube.objects["ResourceSlice", "default", f"slice-{node}"]
    spec = {key: value for key, value in cluster.slice_spec("net", 1).items() if key != "nodeName"}
    kube.put("ResourceSlice", "net", spec={**spec, "allNodes": True})
    return kube


def _of_the_network() -> DriverFile:
    nodes = FILE.nodes.model_copy(update={"own_slices": False})
    return FILE.model_copy(update={"spec": FILE.spec.model_copy(update={"nodes": nodes})})


def test_devices_of_the_network_serve_all_nodes_of_a_driver_that_has_no_others() -> None:
    wait_ready(_with_the_network_alone(), _of_the_network())


def test_a_driver_of_the_network_that_published_nothing_is_not_ready() -> None:
    kube = _with_the_network_alone()
    del kube.objects["ResourceSlice", "default", "net"]
    with pytest.raises(DriverFailed, match="no ResourceSlice for the network"):
        wait_ready(kube, _of_the_network())


def test_the_networks_slices_do_not_stand_for_those_of_nodes_that_are_still_to_come() -> None:
    """Which of the two is published first is chance; and whether the driver or its file is wrong cannot be seen from here."""
    with pytest.raises(WaitTimeout, match="no ResourceSlice for node-1, node-2, only for the network") as raised:
        wait_ready(_with_the_network_alone(), FILE)
    assert "spec.nodes.ownSlices" in raised.value.hint


def test_a_node_that_others_of_its_kind_left_behind_is_named_though_there_is_a_network() -> None:
    kube = _with_the_network_alone()
    kube.put("ResourceSlice", "slice-node-1", spec=cluster.slice_spec("node-1", 1))
    with pytest.raises(
        DriverFailed, match=r"last seen: the pods are Ready, but there is no ResourceSlice for node-2\s"
    ):
        wait_ready(kube, FILE)


def test_a_missing_image_is_our_fault_and_the_cure_is_said() -> None:
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
def test_who_is_still_pulling_or_starting_may_be_waited_for_longer(state: Any) -> None:
    with pytest.raises(WaitTimeout) as raised:
        wait_ready(_kube("node-1", node_2=_state(**state)), FILE)
    assert "--patience 3" in raised.value.hint


def test_a_driver_that_crashes_is_blamed_with_its_last_words() -> None:
    status = _state(waiting={"reason": "CrashLoopBackOff"})
    status["containerStatuses"][0]["restartCount"] = 3
    kube = _kube("node-1", node_2=status)
    kube.texts["driver-node-2/driver/previous"] = "".join(f"line {n}\n" for n in range(40)) + "no such device\n"
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
def test_a_driver_that_crashes_without_a_word_is_blamed_too(container: Any, part: str) -> None:
    status = {"phase": "Pending", part: [{"name": "driver", "ready": False, "restartCount": 1, **container}]}
    with pytest.raises(DriverFailed, match="container driver of driver-node-2 end"):
        wait_ready(_kube("node-1", node_2=status), FILE)


def test_a_crash_that_is_over_blames_nobody() -> None:
    over = {"name": "driver", "ready": True, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}}
    with pytest.raises(WaitTimeout, match="node-2: no pod of the driver"):
        wait_ready(_kube(node_1={**READY, "containerStatuses": [over]}), FILE)


def test_an_init_container_that_ended_well_blames_nobody() -> None:
    done = {"name": "init", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}, "ready": True}
    status = {"phase": "Pending", "initContainerStatuses": [done]}
    with pytest.raises(WaitTimeout):
        wait_ready(_kube("node-1", node_2=status), FILE)


@pytest.mark.parametrize("reason", ["CreateContainerError", "CreateContainerConfigError", "RunContainerError"])
def test_a_node_that_cannot_start_the_driver_is_not_its_fault_whatever_another_pod_printed(reason: str) -> None:
    status = _state(waiting={"reason": reason, "message": "write /run/containerd: no space left on device"})
    kube = _kube("node-1", node_2=status)
    kube.texts["driver-node-1/driver"] = "serving\n"
    with pytest.raises(WaitTimeout, match="no space left on device") as raised:
        wait_ready(kube, FILE)
    assert "the node could not start the container" in raised.value.hint
    assert "serving" not in str(raised.value)


def test_a_pod_that_its_node_never_looked_at_is_not_the_drivers_fault_whatever_another_pod_printed() -> None:
    kube = _kube("node-1", node_2={"phase": "Pending"})
    kube.texts["driver-node-1/driver"] = "serving\n"
    with pytest.raises(WaitTimeout, match="driver-node-2 is Pending: not Ready yet") as raised:
        wait_ready(kube, FILE)
    assert raised.value.hint == "look at the driver's pods"


def test_a_driver_that_runs_and_does_not_get_ready_is_told_so_and_not_blamed() -> None:
    kube = _kube("node-1", node_2=_state(running={"startedAt": "now"}))
    kube.texts["driver-node-2/driver"] = "waiting for the kubelet\n"
    with pytest.raises(WaitTimeout, match="container driver runs and is not ready") as raised:
        wait_ready(kube, FILE)
    assert "readiness probe" in raised.value.hint
    assert "waiting for the kubelet" in str(raised.value)


def test_a_container_that_the_runtime_could_not_start_is_not_the_drivers_fault() -> None:
    status = _state(waiting={"reason": "CrashLoopBackOff"})
    never = {"exitCode": 128, "reason": "StartError", "message": "no space left on device"}
    status["containerStatuses"][0]["lastState"] = {"terminated": never}
    with pytest.raises(WaitTimeout, match=r"ended with 128 \(StartError\): no space left on device") as raised:
        wait_ready(_kube("node-1", node_2=status), FILE)
    assert "the node could not start the container" in raised.value.hint


def test_an_api_server_that_goes_away_is_never_the_drivers_fault() -> None:
    kube = _kube("node-1", "node-2")
    kube.down = True
    with pytest.raises(ApiError):
        wait_ready(kube, FILE)


def test_a_selector_that_fits_no_node_is_said() -> None:
    wanted = FILE.model_copy(update={"spec": FILE.spec.model_copy(update={"nodes": _selector(no="where")})})
    with pytest.raises(UsageError, match=r"is expected on no node: none has the labels no=where") as raised:
        wait_ready(_kube("node-1"), wanted)
    assert "spec.nodes.selector" in raised.value.hint


def test_a_cluster_without_nodes_has_no_labels_to_blame() -> None:
    with pytest.raises(UsageError, match="on no node: the cluster has none"):
        wait_ready(FakeKube(), FILE)  # type: ignore[arg-type]  # the fake


def test_taints_that_leave_no_node_are_named_before_anything_is_waited_for() -> None:
    kube = _kube("node-1", "node-2")
    for node in ("node-1", "node-2"):
        kube.objects["Node", "default", node]["spec"] = {"taints": [GPU_ONLY]}
    with pytest.raises(UsageError, match="taints keep the tests' pods from all that there are") as raised:
        wait_ready(kube, FILE)
    assert "node-1: nvidia.com/gpu=present:NoSchedule" in str(raised.value)
    assert "labels" not in str(raised.value)
    assert "spec.nodes.tolerations" in raised.value.hint


@pytest.mark.parametrize(
    ("said", "fits"),
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
def test_a_node_is_expected_whose_taints_the_driver_file_tolerates(said: Any, fits: bool) -> None:
    tolerations = (Toleration.model_validate_json(json.dumps(said)),)
    nodes = FILE.nodes.model_copy(update={"tolerations": tolerations})
    wanted = FILE.model_copy(update={"spec": FILE.spec.model_copy(update={"nodes": nodes})})
    kube = _kube()
    kube.put("Node", "gpu-1", spec={"taints": [GPU_ONLY]})
    assert ("gpu-1" in expected_nodes(kube, wanted)) is fits


def test_every_taint_of_a_node_has_to_be_tolerated() -> None:
    other = {"key": "dedicated", "effect": "NoExecute"}
    tolerated = Toleration(key="nvidia.com/gpu", operator="Exists")
    assert untolerated_taints({"spec": {"taints": [GPU_ONLY, other]}}, [tolerated]) == ["dedicated:NoExecute"]
    assert untolerated_taints({"spec": {"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}}, []) == []
