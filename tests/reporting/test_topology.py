from __future__ import annotations

from typing import Any

import pytest

from testbed.drivers.expected_slices import expected_slices
from testbed.errors import UsageError
from testbed.folders import data
from testbed.reporting.topology import Location, PublishedDevice, by_root, group_similar, locations

Object = dict[str, Any]
HARDWARE = data("manifests") / "hardware"


def slice_of(
    *devices: Object, driver: str = "gpu.example", pool: str = "node-1", **scope: Object | str | bool
) -> Object:
    reference = {"name": pool, "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": f"{driver}-{pool}"},
        "spec": {"driver": driver, **(scope or {"nodeName": pool}), "pool": reference, "devices": list(devices)},
    }


def device(name: str, numa: int | None = None, root: str = "", **more: Object) -> Object:
    attributes: Object = {"model": {"string": "F100"}}
    if numa is not None:
        attributes["resource.kubernetes.io/numaNode"] = {"int": numa}
    if root:
        attributes["resource.kubernetes.io/pcieRoot"] = {"string": root}
    return {"name": name, "attributes": attributes, **more}


def named(groups: list[tuple[Any, list[PublishedDevice]]]) -> list[tuple[Any, list[str]]]:
    return [(key, [each.name for each in devices]) for key, devices in groups]


def test_devices_of_several_drivers_share_a_location() -> None:
    gpus = slice_of(device("gpu-0", 0, "pci0000:10"), device("gpu-1", 1, "pci0000:80"))
    nics = slice_of(device("nic-0", 0, "pci0000:10"), device("odd-0"), driver="nic.example")
    (location,) = locations([gpus, nics])
    assert (location.name, location.scope, location.drivers) == ("node-1", "", ("gpu.example", "nic.example"))
    assert named(location.by_numa()) == [(0, ["gpu-0", "nic-0"]), (1, ["gpu-1"]), (None, ["odd-0"])]
    assert named(by_root(location.devices)) == [
        ("pci0000:10", ["gpu-0", "nic-0"]),
        ("pci0000:80", ["gpu-1"]),
        ("", ["odd-0"]),
    ]


def test_nodes_come_first_and_one_can_be_selected() -> None:
    rule = {"key": "rack", "operator": "In", "values": ["a", "b"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    slices = [
        slice_of(pool="fabric", allNodes=True),
        slice_of(pool="box", nodeSelector=selector),
        slice_of(pool="node-2"),
        slice_of(pool="node-1"),
    ]
    found = [(location.name, location.scope) for location in locations(slices)]
    assert found == [("node-1", ""), ("node-2", ""), ("fabric", "any node"), ("box", "nodes with rack In a, b")]
    assert [location.name for location in locations(slices, "node-2")] == ["node-2", "fabric", "box"]


def test_only_the_newest_generation_is_used_and_incomplete_pools_are_marked() -> None:
    old, new = slice_of(device("gpu-0")), slice_of(device("gpu-1"))
    new["spec"]["pool"] |= {"generation": 2, "resourceSliceCount": 2}
    (location,) = locations([old, new])
    assert [each.name for each in location.devices] == ["gpu-1"]
    assert not location.pools[0].complete


def test_taints_sharing_and_binding_conditions_are_read() -> None:
    taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
    more: Object = {
        "capacity": {"memory": {"value": "8Gi"}}, "taints": [taint, {"key": "c", "effect": "None"}],
        "allowMultipleAllocations": True, "bindingConditions": ["x/ready"],
    }  # fmt: skip
    (found,) = locations([slice_of(device("gpu-0", **more))])[0].devices
    assert found.taints == ("a=b:NoSchedule", "c:None")
    assert (found.shared, found.binding_conditions, found.capacity) == (True, ("x/ready",), {"memory": "8Gi"})


def test_similar_neighbours_are_grouped() -> None:
    devices = [PublishedDevice("d", "p", str(index), {"model": "a" if index < 3 else "b"}, {}) for index in range(5)]
    assert [[each.name for each in group] for group in group_similar(devices)] == [["0", "1", "2"], ["3", "4"]]


def test_a_location_is_converted_to_plain_data() -> None:
    (location,) = locations([slice_of(device("gpu-0", 0, "pci0000:10"))])
    found = location.as_data()
    assert found["pools"] == [
        {"driver": "gpu.example", "pool": "node-1", "generation": 1, "slices": 1, "complete": True}
    ]
    assert found["devices"][0]["numaNode"] == 0
    assert found["devices"][0]["attributes"]["model"] == "F100"


def test_the_slices_of_a_hardware_file_come_from_the_fake_driver() -> None:
    found: list[Location] = locations(expected_slices(HARDWARE / "fabric.yaml", "n"))
    assert [(location.name, len(location.devices)) for location in found] == [
        ("n", 1),
        ("fabric-ports", 16),
        ("accelerator-box", 4),
    ]


def test_an_invalid_hardware_file_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="is not a valid hardware file"):
        expected_slices(HARDWARE.parent / "drivers" / "fake-gpu.yaml", "n")
