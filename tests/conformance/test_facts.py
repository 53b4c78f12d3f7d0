"""Facts: what is found in a cluster with a driver, and what a cluster that is not there yet will have."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.conformance.facts import expected, gather, usual_gates
from testbed.providers.base import Capability
from tests.fakes import cluster


def test_what_is_there_is_counted() -> None:
    made = cluster.make()
    kube: Any = made.kube
    found = gather(kube, made.driver_file, [Capability.MAKE_OBJECTS])
    assert (found.kubernetes, found.nodes, found.devices, found.node_devices) == ("v1.37.0", 2, 8, 4)
    assert found.capabilities == {"make-objects"}
    assert found.features == made.driver_file.features
    assert found.gates == usual_gates("1.37")  # nobody may look at this server's metrics
    assert "ResourceHealthStatus" in found.gates_assumed
    assert "DRAConsumableCapacity" not in found.gates_assumed


def test_the_oldest_kubelet_of_the_drivers_nodes_is_known() -> None:
    made = cluster.make()
    kube: Any = made.kube
    nodes = [each for (kind, _, _), each in kube.objects.items() if kind == "Node"]
    for node, version in zip(nodes, ["v1.37.0", "v1.9.4"], strict=True):
        node["status"]["nodeInfo"]["kubeletVersion"] = version
    assert gather(kube, made.driver_file, []).kubelet == "v1.9.4"


def test_the_gates_are_those_that_the_server_says(monkeypatch: pytest.MonkeyPatch) -> None:
    made = cluster.make()
    kube: Any = made.kube
    found = 'kubernetes_feature_enabled{name="DRADeviceTaints",stage="BETA"} %d\n'
    texts = {"/metrics": found % 1 + found.replace("Taints", "Other") % 0, "/version": {"gitVersion": "v1.37.0"}}
    monkeypatch.setattr(kube, "request", lambda _method, path, **_: texts[path])
    facts = gather(kube, made.driver_file, [])
    assert facts.gates == {"DRADeviceTaints"}
    assert not facts.gates_assumed


@pytest.mark.parametrize(
    ("kubernetes", "changed", "is_on"),
    [
        ("1.34", {}, False),
        ("v1.34.2", {"DRADeviceTaints": True}, True),
        ("1.34", {"AllAlpha": True}, True),
        ("1.37", {}, True),
        ("1.99", {}, False),
    ],
)
def test_a_version_has_gates_that_are_on_by_themselves(kubernetes: str, changed: dict[str, bool], is_on: bool) -> None:
    assert ("DRADeviceTaints" in usual_gates(kubernetes, changed)) is is_on


def test_a_testbed_that_is_to_be_made_can_do_everything() -> None:
    found = expected("1.36", 2, frozenset({"device-status"}))
    assert found.capabilities == {each.value for each in Capability}
    assert found.features == {"device-status"}
    assert found.devices == 0


def test_devices_of_other_classes_do_not_count() -> None:
    made = cluster.make()
    kube: Any = made.kube
    device = kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]["devices"][0]
    device["attributes"]["purpose"] = {"string": "taints"}
    assert gather(kube, made.driver_file, []).devices == 7


def test_special_devices_may_be_apart_from_ordinary_ones() -> None:
    made = cluster.make()
    kube: Any = made.kube
    shared, part, *_ = kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]["devices"]
    shared |= {"allowMultipleAllocations": True, "attributes": {"purpose": {"string": "capacity"}}}
    part |= {"consumesCounters": [{"counterSet": "set", "counters": {}}]}
    assert gather(kube, made.driver_file, []).apart == {"capacity"}


def test_devices_where_no_ordinary_pod_runs_do_not_count() -> None:
    made = cluster.make()
    kube: Any = made.kube
    kube.put("Node", "control-plane", spec={"taints": [{"key": "x", "effect": "NoSchedule"}]}, status={})
    kube.put("ResourceSlice", "slice-control-plane", spec=cluster.slice_spec("control-plane", 4))
    found = gather(kube, made.driver_file, [])
    assert (found.nodes, found.devices, found.node_devices) == (2, 8, 4)


def test_devices_of_the_network_are_within_reach_of_every_node() -> None:
    made = cluster.make()
    kube: Any = made.kube
    spec = {key: value for key, value in cluster.slice_spec("far", 3).items() if key != "nodeName"}
    kube.put("ResourceSlice", "slice-far", spec={**spec, "allNodes": True})
    found = gather(kube, made.driver_file, [])
    assert (found.devices, found.node_devices) == (11, 7)
