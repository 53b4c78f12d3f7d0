from dataclasses import replace
from typing import Any

import pytest

from fake_driver.devices.model import (
    Attributes,
    Binding,
    CounterConsumption,
    Device,
    Pool,
    RequestPolicy,
    Taint,
    Version,
)
from fake_driver.publishing.slices import MAX_DEVICES, Layout, Owner, for_network, for_node
from fake_driver.publishing.validation import find_problems

NODE = Owner("worker", "node-uid")
DRIVER = "gpu.example"
Object = dict[str, Any]


def gpus(count: int, model: str = "a") -> tuple[Device, ...]:
    return tuple(Device(f"gpu-{index}", "gpu", {"model": model}, {"memory": "80Gi"}) for index in range(count))


def wanted(count: int, model: str = "a") -> list[Object]:
    return for_node(DRIVER, NODE, gpus(count, model))


def test_a_slice_contains_all_fields_of_a_device() -> None:
    attributes: Attributes = {"s": "x", "i": 1, "b": False, "v": Version("1.2.3")}
    (slice_,) = for_node(DRIVER, NODE, (Device("gpu-0", "gpu", attributes, {"memory": "80Gi"}),))
    assert slice_["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "worker", "uid": "node-uid", "controller": True}
    ]
    assert slice_["spec"]["devices"] == [
        {
            "name": "gpu-0",
            "attributes": {"s": {"string": "x"}, "i": {"int": 1}, "b": {"bool": False}, "v": {"version": "1.2.3"}},
            "capacity": {"memory": {"value": "80Gi"}},
        }
    ]


@pytest.mark.parametrize(("count", "slices"), [(0, 1), (1, 1), (128, 1), (129, 2), (1000, 8)])
def test_devices_are_published_in_as_few_slices_as_possible(count: int, slices: int) -> None:
    parts = wanted(count)
    assert len(parts) == slices
    assert all(len(part["spec"].get("devices", [])) <= MAX_DEVICES for part in parts)
    assert {part["spec"]["pool"]["resourceSliceCount"] for part in parts} == {slices}
    assert sum(len(part["spec"].get("devices", [])) for part in parts) == count
    assert [part["metadata"]["name"] for part in parts] == sorted(part["metadata"]["name"] for part in parts)


def test_long_names_are_shortened_to_unique_valid_names() -> None:
    nodes = [Owner("n" * 250 + end, "u") for end in ("a", "b")]
    names = [for_node("d" * 63, node, ())[0]["metadata"]["name"] for node in nodes]
    assert len(set(names)) == 2
    assert all(len(name) <= 253 for name in names)


def test_a_slice_contains_sharing_counters_taints_and_binding() -> None:
    device = Device(
        "gpu-0",
        "gpu",
        {"list": (Version("1.2.3"), Version("2.0.0")), "flags": (True,)},
        {"memory": "8Gi"},
        taints=(Taint("a", "NoExecute", "b"), Taint("c", "NoSchedule")),
        consumes_counters=(CounterConsumption("whole", {"memory": "4Gi"}, {"memory": "8Gi"}),),
        shared=True,
        policies={"memory": RequestPolicy("1Gi", (), "1Gi", "4Gi", "512Mi")},
        binding=Binding(("x/ready",), ("x/failed",), binds_to_node=True),
    )
    slice_, counters = for_node(DRIVER, NODE, (device,))
    (said,) = slice_["spec"]["devices"]
    assert said["attributes"] == {"list": {"versions": ["1.2.3", "2.0.0"]}, "flags": {"bools": [True]}}
    within = {"min": "1Gi", "max": "4Gi", "step": "512Mi"}
    assert said["capacity"]["memory"]["requestPolicy"] == {"default": "1Gi", "validRange": within}
    assert said["taints"] == [{"key": "a", "value": "b", "effect": "NoExecute"}, {"key": "c", "effect": "NoSchedule"}]
    assert said["consumesCounters"] == [{"counterSet": "whole", "counters": {"memory": {"value": "4Gi"}}}]
    assert said["allowMultipleAllocations"] is said["bindsToNode"] is True
    assert (said["bindingConditions"], said["bindingFailureConditions"]) == (["x/ready"], ["x/failed"])
    assert counters["spec"]["sharedCounters"] == [{"name": "whole", "counters": {"memory": {"value": "8Gi"}}}]
    assert "devices" not in counters["spec"]


def test_only_the_slice_of_a_device_with_a_lower_limit_is_split() -> None:
    devices = gpus(300)
    tainted = (*devices[:200], Device("gpu-200", "gpu", {}, {}, taints=(Taint("a", "NoSchedule"),)), *devices[201:])
    sizes = {part["metadata"]["name"][:5]: len(part["spec"]["devices"]) for part in for_node(DRIVER, NODE, tainted)}
    assert sizes == {"00000": 128, "00002": 64, "00003": 64, "00004": 44}
    untouched = {part["metadata"]["name"] for part in wanted(300)}
    assert {f"{start}-{DRIVER}-worker" for start in ("00000", "00002", "00004")} == untouched


TAINTED = Device("gpu-200", "gpu", {}, {}, taints=(Taint("a", "NoSchedule"),))


def named(slices: list[Object]) -> dict[str, list[str]]:
    """Return the devices of each slice, by its index."""
    return {each["metadata"]["name"][:5]: [one["name"] for one in each["spec"].get("devices", ())] for each in slices}


def test_the_position_of_an_unplugged_device_stays_free() -> None:
    base = gpus(300)
    before, after = (named(for_node(DRIVER, NODE, base[without:], Layout(base))) for without in (0, 1))
    assert after == {**before, "00000": before["00000"][1:]}


def test_a_slice_whose_devices_are_all_unplugged_stays_without_devices() -> None:
    *_, last = for_node(DRIVER, NODE, gpus(128), Layout(gpus(130)))
    assert "devices" not in last["spec"]
    assert last["spec"]["pool"]["resourceSliceCount"] == 2


def test_devices_that_are_not_in_the_file_come_last() -> None:
    devices = (*gpus(2), TAINTED)
    assert named(for_node(DRIVER, NODE, devices, Layout(gpus(2)[::-1]))) == {"00000": ["gpu-1", "gpu-0", "gpu-200"]}


def test_a_split_slice_stays_split() -> None:
    base = gpus(300)
    cut = for_node(DRIVER, NODE, (*base[:200], TAINTED, *base[201:]), Layout(base))
    there = {each["metadata"]["name"] for each in cut}
    assert named(for_node(DRIVER, NODE, base, Layout(base, there))) == named(cut)
    tainted_again = for_node(DRIVER, NODE, (TAINTED, *base[:200], *base[201:]), Layout(base, there))
    assert named(tainted_again) == named(cut)
    assert find_problems(tainted_again) == []


def test_the_counters_of_an_unplugged_device_stay() -> None:
    base = tuple(
        replace(each, consumes_counters=(CounterConsumption(each.name, {"c": "1"}, {"c": "1"}),)) for each in gpus(20)
    )
    before, after = (for_node(DRIVER, NODE, base[without:], Layout(base)) for without in (0, 1))
    assert [one["metadata"]["name"] for one, other in zip(before, after, strict=True) if one != other] == [
        f"00000-{DRIVER}-worker"
    ]


def test_a_pool_of_the_network_belongs_to_no_node() -> None:
    selector: Object = {"nodeSelectorTerms": [{"matchFields": []}]}
    far, near = for_network(DRIVER, [Pool("far", gpus(1), node_selector=selector), Pool("worker", gpus(1))])
    assert far["spec"]["nodeSelector"] == selector
    assert near["spec"]["allNodes"] is True
    for each in (far, near):
        assert "nodeName" not in each["spec"]
        assert "ownerReferences" not in each["metadata"]
    assert near["metadata"]["name"] != wanted(1)[0]["metadata"]["name"]
