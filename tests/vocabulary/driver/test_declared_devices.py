"""What the driver file declares about devices is compared with the slices, device by device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from testbed.drivers.published.slices import pools
from testbed.models.driver.devices import Expect
from testbed.models.driver_sections import Partitions
from testbed.vocabulary.driver import declared_devices
from testbed.vocabulary.driver.optional_devices import counter_groups
from tests.fakes import cluster

PROMISED = Partitions.model_validate_json('{"class": "p.example", "whole": 1, "parts": 2}')


def _pools(**changed: Any) -> Any:
    spec: Any = cluster.slice_spec("node-1", 2)
    spec["devices"][1] |= changed
    return pools([{"metadata": {"name": "s"}, "spec": spec}], cluster.DRIVER)


def _of_the_network() -> Any:
    spec = {key: value for key, value in cluster.slice_spec("far", 1).items() if key != "nodeName"}
    return pools([{"metadata": {"name": "s"}, "spec": {**spec, "allNodes": True}}], cluster.DRIVER)


def _groups(limit: int) -> Any:
    takes = {"whole": 8, "left": 4, "right": 4}
    devices = [
        {"name": name, "consumesCounters": [{"counterSet": "set", "counters": {"memory": {"value": str(amount)}}}]}
        for name, amount in takes.items()
    ]
    spec: Any = cluster.slice_spec("node-1", 0)
    sets = [{"name": "set", "counters": {"memory": {"value": str(limit)}}}]
    (pool,) = pools(
        [{"metadata": {"name": "s"}, "spec": {**spec, "devices": devices, "sharedCounters": sets}}], cluster.DRIVER
    )
    return list(counter_groups(pool, cluster.DRIVER))


def test_a_shared_device_is_named_with_its_field() -> None:
    assert list(declared_devices.shared(_pools())) == []
    (found,) = declared_devices.shared(_pools(allowMultipleAllocations=True))
    assert found == "device gpu-1 of pool node-1 has allowMultipleAllocations: true"


def test_a_device_of_the_network_is_named_with_its_field() -> None:
    assert list(declared_devices.without_node(_pools())) == []
    (found,) = declared_devices.without_node(_of_the_network())
    assert found == "device gpu-0 of pool far has allNodes: true"


def test_devices_count_on_the_nodes_that_can_use_them() -> None:
    rack = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["a"]}]}]}
    spec: Any = {"pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "driver": cluster.DRIVER}
    spec |= {"perDeviceNodeSelection": True, "devices": [{"name": "one", "nodeName": "node-1"}]}
    spec["devices"].append({"name": "two", "nodeSelector": rack})
    ordinary = tuple(pools([{"metadata": {"name": "s"}, "spec": spec}], cluster.DRIVER))
    file: Any = SimpleNamespace(devices=SimpleNamespace(per_node=2), are_devices_local=True)
    labels = {"node-1": {"rack": "a"}, "node-2": {"rack": "a"}, "node-3": {}}
    found = declared_devices.Contradictions(file, labels, ordinary, ordinary)
    assert found.devices_without_node == ()
    assert found.nodes_with_too_few_devices == (
        "node node-2 has 1, but spec.devices.perNode is 2",
        "node node-3 has 0, but spec.devices.perNode is 2",
    )


def test_a_node_with_fewer_devices_than_promised_is_named() -> None:
    found = list(declared_devices.too_few({"node-1": 4, "node-2": 3}, 4, "spec.devices.perNode"))
    assert found == ["node node-2 has 3, but spec.devices.perNode is 4"]


@pytest.mark.parametrize(
    ("expect", "problems"),
    [
        ({"attributes": {"model": "F100"}, "capacity": {"memory": "80Gi"}}, 0),
        ({"attributes": {"gpu.dra-testbed.example/model": "F100"}, "capacity": {"memory": "81920Mi"}}, 0),
        ({"attributes": {"model": "A100"}}, 2),
        ({"attributes": {"colour": True}}, 2),
        ({"capacity": {"memory": "40Gi"}}, 2),
        ({"capacity": {"bandwidth": "1G"}}, 2),
    ],
)
def test_values_that_differ_from_the_expected_ones_are_named(expect: dict[str, Any], problems: int) -> None:
    assert len(list(declared_devices.unexpected(_pools(), Expect(**expect), cluster.DRIVER))) == problems


@pytest.mark.parametrize(("are_shared", "missing"), [(False, 0), (True, 1)])
def test_of_ordinary_devices_that_are_declared_shareable_no_others_count(are_shared: bool, missing: int) -> None:
    declared = SimpleNamespace(per_node=1)
    file: Any = SimpleNamespace(are_devices_shared=are_shared, optional=SimpleNamespace(capacity=declared))
    special = tuple(_pools(allowMultipleAllocations=True))
    found = declared_devices.Contradictions(file, {"node-1": {}}, special, tuple(_pools()))
    assert len(found.nodes_with_too_few_shareable_devices) == missing


def test_promised_partitions_are_counted() -> None:
    assert list(declared_devices.broken_promises(_groups(8), PROMISED, "node-1")) == []
    more = PROMISED.model_copy(update={"parts": 3})
    assert list(declared_devices.broken_promises(_groups(8), more, "node-1")) == [
        "node node-1 has 2 partitions, but spec.optional.partitions.parts is 3"
    ]


def test_counters_that_offer_a_device_twice_break_the_promise_of_a_whole_device() -> None:
    (found,) = declared_devices.broken_promises(_groups(16), PROMISED, "node-1")
    assert found.startswith("node node-1 has 0 devices that exclude all others")
    assert "spec.optional.partitions.whole is 1" in found


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("consumesCounters", [{"counterSet": "s"}], "partitions"),
        ("allowMultipleAllocations", True, "capacity"),
        ("bindingConditions", ["ready"], "binding"),
        ("taints", [{"key": "a.example/b", "effect": "NoSchedule"}], "taints"),
        ("taints", [{"key": "a.example/b", "effect": "None"}], ""),
        ("taints", [{"key": "suites.dra-testbed.example/broken", "effect": "NoExecute"}], ""),
    ],
)
def test_undeclared_features_are_named_with_device_and_field(field: str, value: Any, kind: str) -> None:
    classes = {"partitions": None, "capacity": None, "binding": None, "taints": None}
    for known, expected in ((classes, [kind] if kind else []), ({**classes, kind: "ordinary"}, [])):
        file: Any = SimpleNamespace(classes=SimpleNamespace(**known), devices=SimpleNamespace(classes=("ordinary",)))
        found = declared_devices.Contradictions(file, {}, (), tuple(_pools(**{field: value}))).undeclared_features
        assert list(found) == [
            f"device gpu-1 of pool node-1 has {field}, and spec.optional.{each} of the driver file does not name its class"
            for each in expected
        ]


def test_devices_without_a_version_are_named() -> None:
    found = list(declared_devices.without_version(_pools(attributes={"driverVersion": {"version": "1.2.3"}})))
    assert found == ["device gpu-0 of pool node-1"]
