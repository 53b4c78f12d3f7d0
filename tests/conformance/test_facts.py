"""The facts of a cluster with a driver, and of a testbed that will be made."""

from __future__ import annotations

import json
from typing import Any

import pytest

from testbed.conformance.facts import default_gates, expected_facts, gather
from testbed.conformance.requirement import GIVEN
from testbed.kube import features
from testbed.models.driver.devices import ClaimShape
from testbed.providers.base import Capability
from tests.fakes import cluster
from tests.fakes.driver_files import with_values


def test_nodes_and_devices_are_counted() -> None:
    made = cluster.make()
    kube: Any = made.kube
    found = gather(kube, made.driver_file, [Capability.MAKE_OBJECTS])
    assert (found.kubernetes, found.nodes, found.devices, found.min_node_devices) == ("v1.37.0", 2, 8, 4)
    assert found.capabilities == {"make-objects"}
    assert found.features == made.driver_file.features
    assert found.gates == default_gates("1.37")  # the metrics of this server cannot be read
    assert "ResourceHealthStatus" in found.gates_assumed
    assert "DRAConsumableCapacity" not in found.gates_assumed


def test_the_oldest_kubelet_of_the_drivers_nodes_is_found() -> None:
    made = cluster.make()
    kube: Any = made.kube
    nodes = [each for (kind, _, _), each in kube.objects.items() if kind == "Node"]
    for node, version in zip(nodes, ["v1.37.0", "v1.9.4"], strict=True):
        node["status"]["nodeInfo"]["kubeletVersion"] = version
    assert gather(kube, made.driver_file, []).kubelet == "v1.9.4"


def test_the_gates_are_those_that_the_server_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    made = cluster.make()
    kube: Any = made.kube
    found = 'kubernetes_feature_enabled{name="DRADeviceTaints",stage="BETA"} %d\n'
    texts = {"/metrics": found % 1 + found.replace("Taints", "Other") % 0, "/version": {"gitVersion": "v1.37.0"}}
    monkeypatch.setattr(kube, "request", lambda _method, path, **_: texts[path])
    facts = gather(kube, made.driver_file, [])
    assert "DRADeviceTaints" in facts.gates
    assert "DRADeviceOther" not in facts.gates
    assert not facts.gates_assumed


def test_a_gate_that_the_server_does_not_report_has_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    made = cluster.make()
    kube: Any = made.kube
    texts = {
        "/metrics": 'kubernetes_feature_enabled{name="DRADeviceTaints"} 0\n',
        "/version": {"gitVersion": "v1.99.0"},
    }
    monkeypatch.setattr(kube, "request", lambda _method, path, **_: texts[path])
    found_on = gather(kube, made.driver_file, []).gates
    assert "DRADeviceTaints" not in found_on
    assert "DRAPrioritizedList" in found_on  # GA, so that version may no longer report it


def _claim(kube: Any, namespace: str, *devices: str, node: str = "node-1", **more: Any) -> None:
    results = [{"driver": cluster.DRIVER, "pool": node, "device": name, **more} for name in devices]
    name = f"training-{len(kube.objects)}"
    kube.put("ResourceClaim", name, namespace, status={"allocation": {"devices": {"results": results}}})


def test_devices_that_claims_of_others_hold_are_not_counted_and_the_claim_is_named() -> None:
    made = cluster.make()
    kube: Any = made.kube
    kube.put("Namespace", "team-a")
    kube.put("ResourceClaim", "waiting", "team-a", spec={})
    _claim(kube, "team-a", "gpu-0", "gpu-1")
    found = gather(kube, made.driver_file, [Capability.MAKE_OBJECTS], made.owner)
    assert (found.devices, found.min_node_devices) == (6, 2)
    claim = next(name for kind, _, name in kube.objects if kind == "ResourceClaim" and name != "waiting")
    assert found.held_by_others == f"claim team-a/{claim} holds gpu-0 of node-1, and 1 more are held"


def test_claims_that_leave_devices_to_the_tests_are_not_holders() -> None:
    made = cluster.make()
    kube: Any = made.kube
    kube.put("Namespace", "team-a")
    kube.put("Namespace", "dra-share-001-abc", metadata=made.owner.mark({"metadata": {}})["metadata"])
    _claim(kube, "team-a", "gpu-0", adminAccess=True)
    _claim(kube, "team-a", "gpu-0", shareID="a")
    _claim(kube, "team-a", "gpu-9")  # no longer published, or of another class
    _claim(kube, "team-a", "gpu-0", driver="another.example")
    _claim(kube, "dra-share-001-abc", "gpu-0")  # left by an earlier run, which this testbed deletes
    found = gather(kube, made.driver_file, [Capability.MAKE_OBJECTS], made.owner)
    assert (found.devices, found.held_by_others) == (8, "")


def test_claims_are_not_read_with_read_only_access(monkeypatch: pytest.MonkeyPatch) -> None:
    made = cluster.make()
    kube: Any = made.kube
    listed: list[str] = []
    known = kube.list

    def listing(api_version: str, kind: str, **how: str) -> Any:
        listed.append(kind)
        return known(api_version, kind, **how)

    monkeypatch.setattr(kube, "list", listing)
    monkeypatch.setattr(features, "gates", lambda _: {})
    gather(kube, made.driver_file, [], made.owner)
    assert set(listed) == {"ResourceSlice", "Node"}


@pytest.mark.parametrize(
    ("kubernetes", "changed", "is_on"),
    [
        ("1.34", {}, False),
        ("v1.34.2", {"DRADeviceTaints": True}, True),
        ("1.34", {"AllAlpha": True}, True),
        ("1.37", {}, True),
        ("1.99", {}, True),  # no lock file for it; the gate is GA in 1.37
        ("1.33", {}, False),
    ],
)
def test_a_version_has_gates_that_are_on_by_default(kubernetes: str, changed: dict[str, bool], is_on: bool) -> None:
    assert ("DRADeviceTaints" in default_gates(kubernetes, changed)) is is_on


def test_a_testbed_that_will_be_made_is_assumed_to_have_all_capabilities() -> None:
    found = expected_facts("1.36", 2, frozenset({"device-status"}))
    assert found.capabilities == {each.value for each in Capability}
    assert found.features == {"device-status"}
    assert found.devices == 0


def test_devices_of_other_classes_are_not_counted() -> None:
    made = cluster.make()
    kube: Any = made.kube
    device = kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]["devices"][0]
    device["attributes"]["purpose"] = {"string": "taints"}
    assert gather(kube, made.driver_file, []).devices == 7


def test_a_class_is_reserved_if_ordinary_requests_cannot_get_its_devices() -> None:
    made = cluster.make()
    kube: Any = made.kube
    shared, part, *_ = kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]["devices"]
    shared |= {"allowMultipleAllocations": True, "attributes": {"purpose": {"string": "capacity"}}}
    part |= {"consumesCounters": [{"counterSet": "set", "counters": {}}]}
    assert gather(kube, made.driver_file, []).reserved_classes == {"capacity"}


def test_devices_on_nodes_without_ordinary_pods_are_not_counted() -> None:
    made = cluster.make()
    kube: Any = made.kube
    kube.put("Node", "control-plane", spec={"taints": [{"key": "x", "effect": "NoSchedule"}]}, status={})
    kube.put("ResourceSlice", "slice-control-plane", spec=cluster.slice_spec("control-plane", 4))
    found = gather(kube, made.driver_file, [])
    assert (found.nodes, found.devices, found.min_node_devices) == (2, 8, 4)


def test_network_devices_count_for_every_node() -> None:
    made = cluster.make()
    kube: Any = made.kube
    spec = {key: value for key, value in cluster.slice_spec("far", 3).items() if key != "nodeName"}
    kube.put("ResourceSlice", "slice-far", spec={**spec, "allNodes": True})
    found = gather(kube, made.driver_file, [])
    assert (found.devices, found.min_node_devices, found.max_node_devices) == (11, 7, 7)


def test_devices_of_the_largest_node_are_counted() -> None:
    made = cluster.make()
    kube: Any = made.kube
    one, other, *_ = kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]["devices"]
    one |= {"allowMultipleAllocations": True}
    other |= {"attributes": {"purpose": {"string": "capacity"}}}
    found = gather(kube, made.driver_file, [])
    assert (found.min_node_devices, found.max_node_devices) == (3, 4)


@pytest.mark.parametrize("wrong", [{"allowMultipleAllocations": True}, {"allNodes": True}])
def test_a_published_field_takes_back_no_assumption_of_the_driver_file(wrong: dict[str, Any]) -> None:
    made = cluster.make()
    kube: Any = made.kube
    spec = kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]
    spec["devices"][0] |= wrong
    assert gather(kube, made.driver_file, []).given == GIVEN.keys()


@pytest.mark.parametrize("declares_sharing", [False, True])
def test_a_false_declaration_of_the_driver_file_exempts_from_nothing(declares_sharing: bool) -> None:
    made = cluster.make()
    kube: Any = made.kube
    devices = made.driver_file.devices.model_copy(update={"belong_to": "network", "per_node": 33})
    optional = made.driver_file.optional
    if declares_sharing:
        assert optional.capacity
        same = optional.capacity.model_copy(update={"device_class": made.driver_file.device_class})
        optional = optional.model_copy(update={"capacity": same})
    spec = made.driver_file.spec.model_copy(update={"devices": devices, "optional": optional})
    declared = made.driver_file.model_copy(update={"spec": spec})
    assert gather(kube, declared, []).given == GIVEN.keys() - {"few"}

    published = kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]
    del published["nodeName"]
    published["devices"][0]["allowMultipleAllocations"] = True
    assert gather(kube, declared, []).given == GIVEN.keys() - {
        "few",
        "local",
        *(["unshared"] if declares_sharing else []),
    }


@pytest.mark.parametrize(("counts", "claims"), [("any", (8, 4)), ([2], (4, 2)), ([3, 4], (2, 1)), ("all", (2, 1))])
def test_claims_of_the_declared_shape_are_counted(counts: Any, claims: tuple[int, int]) -> None:
    made = cluster.make()
    kube: Any = made.kube
    shape = ClaimShape.model_validate_json(json.dumps({"counts": counts}))
    found = gather(kube, with_values(made.driver_file, "devices", claim=shape), [Capability.MAKE_OBJECTS])
    assert (found.devices, found.min_node_devices) == claims
    assert found.claim == shape


def test_a_node_with_a_device_of_others_has_no_claim_for_all_of_its_devices() -> None:
    made = cluster.make()
    kube: Any = made.kube
    kube.put("Namespace", "team-a")
    _claim(kube, "team-a", "gpu-0")
    shape = ClaimShape.model_validate_json('{"counts": "all"}')
    found = gather(kube, with_values(made.driver_file, "devices", claim=shape), [Capability.MAKE_OBJECTS], made.owner)
    assert (found.devices, found.min_node_devices) == (1, 0)
