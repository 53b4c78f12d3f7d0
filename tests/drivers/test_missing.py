"""Missing slices, devices and pods of a driver are listed with their nodes."""

from __future__ import annotations

from typing import Any

from testbed.drivers.missing import find_missing
from testbed.models.driver_file import DriverFile, load_driver_file
from tests.fakes import cluster
from tests.fakes.driver_files import with_values

FILE = load_driver_file(cluster.driver_path())
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
NO_POD = "no pod of the driver (app=fake-gpu-driver in namespace dra-testbed-driver) exists"


def _kube(fault: str = "", **pods: Any) -> Any:
    kube = cluster.make(fault).kube
    for node, status in pods.items():
        name, spec = node.replace("_", "-"), {"nodeName": node.replace("_", "-")}
        labels = {"labels": {"app": "fake-gpu-driver"}}
        kube.put("Pod", f"driver-{name}", "dra-testbed-driver", spec=spec, status=status, metadata=labels)
    return kube


def _network_attached() -> DriverFile:
    return with_values(FILE, "devices", belong_to="network")


def test_nothing_is_missing_of_a_ready_driver() -> None:
    assert find_missing(_kube(node_1=READY, node_2=READY), FILE) == []
    assert find_missing(_kube(node_1=READY, node_2=READY), _network_attached()) == []


def test_a_missing_driver_has_neither_slices_nor_pods() -> None:
    found = find_missing(_kube("slices-missing"), FILE)
    assert found == ["gpu.dra-testbed.example publishes no ResourceSlice on node-1 and node-2", NO_POD]


def test_a_node_without_slice_and_pod_is_named() -> None:
    kube = _kube(node_1=READY)
    del kube.objects["ResourceSlice", "default", "slice-node-2"]
    found = find_missing(kube, FILE)
    assert found == ["gpu.dra-testbed.example publishes no ResourceSlice on node-2", f"{NO_POD} on node-2"]


def test_a_slice_without_devices_is_named() -> None:
    kube = _kube(node_1=READY, node_2=READY)
    kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]["devices"] = []
    assert find_missing(kube, FILE) == ["gpu.dra-testbed.example publishes no device on node-1"]


def test_a_pod_that_is_not_ready_is_listed_with_the_reason() -> None:
    state = {"waiting": {"reason": "CrashLoopBackOff"}}
    broken = {"phase": "Running", "containerStatuses": [{"name": "driver", "state": state}]}
    (line,) = find_missing(_kube(node_1=READY, node_2=broken), FILE)
    assert line == "the driver's pod driver-node-2 is Running: container driver CrashLoopBackOff"


def test_a_driver_of_network_attached_devices_needs_one_slice() -> None:
    kube = _kube("slices-missing", node_1=READY, node_2=READY)
    assert find_missing(kube, _network_attached()) == ["gpu.dra-testbed.example publishes no ResourceSlice"]
