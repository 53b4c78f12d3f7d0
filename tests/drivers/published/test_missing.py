"""What of a driver is not there is told with its nodes, and nothing where all is well."""

from __future__ import annotations

from typing import Any

from testbed.drivers.published.missing import find_missing
from testbed.models.driver_file import DriverFile, load_driver_file
from tests.fakes import cluster

FILE = load_driver_file(cluster.driver_path())
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
NO_POD = "no pod of the driver (app=fake-gpu-driver in namespace dra-testbed-driver) is"


def _kube(fault: str = "", **pods: Any) -> Any:
    kube = cluster.make(fault).kube
    for node, status in pods.items():
        name, spec = node.replace("_", "-"), {"nodeName": node.replace("_", "-")}
        labels = {"labels": {"app": "fake-gpu-driver"}}
        kube.put("Pod", f"driver-{name}", "dra-testbed-driver", spec=spec, status=status, metadata=labels)
    return kube


def _of_the_network() -> DriverFile:
    nodes = FILE.nodes.model_copy(update={"own_slices": False})
    return FILE.model_copy(update={"spec": FILE.spec.model_copy(update={"nodes": nodes})})


def test_of_a_driver_that_serves_nothing_is_told() -> None:
    assert find_missing(_kube(node_1=READY, node_2=READY), FILE) == []
    assert find_missing(_kube(node_1=READY, node_2=READY), _of_the_network()) == []


def test_a_driver_that_is_gone_has_neither_slices_nor_pods() -> None:
    told = find_missing(_kube("slices-missing"), FILE)
    assert told == ["gpu.dra-testbed.example publishes no ResourceSlice on node-1 and node-2", f"{NO_POD} there"]


def test_one_node_without_its_slice_and_its_pod_is_named() -> None:
    kube = _kube(node_1=READY)
    del kube.objects["ResourceSlice", "default", "slice-node-2"]
    told = find_missing(kube, FILE)
    assert told == ["gpu.dra-testbed.example publishes no ResourceSlice on node-2", f"{NO_POD} on node-2"]


def test_a_node_whose_devices_are_gone_has_a_slice() -> None:
    kube = _kube(node_1=READY, node_2=READY)
    kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]["devices"] = []
    assert find_missing(kube, FILE) == ["gpu.dra-testbed.example publishes no device on node-1"]


def test_a_pod_that_is_not_ready_says_why() -> None:
    state = {"waiting": {"reason": "CrashLoopBackOff"}}
    broken = {"phase": "Running", "containerStatuses": [{"name": "driver", "state": state}]}
    (line,) = find_missing(_kube(node_1=READY, node_2=broken), FILE)
    assert line == "the driver's pod driver-node-2 is Running: container driver CrashLoopBackOff"


def test_a_driver_of_the_network_needs_one_slice() -> None:
    kube = _kube("slices-missing", node_1=READY, node_2=READY)
    assert find_missing(kube, _of_the_network()) == ["gpu.dra-testbed.example publishes no ResourceSlice"]
