"""Slices of any valid hardware are accepted by an API server; invalid slices are found."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_driver.devices.model import DeviceChange, DeviceGroup, Hardware, Partitioning, PartitionProfile, Taint
from fake_driver.hardware.pools import pools
from fake_driver.publishing.counter_placement import with_counters_beside_devices
from fake_driver.publishing.slices import Owner, for_node
from fake_driver.publishing.validation import find_problems

Object = dict[str, Any]
taints = st.lists(st.builds(Taint, st.sampled_from(["a", "b.example/c"]), st.just("NoSchedule")), max_size=2).map(tuple)
values = st.sampled_from([True, 1, "x", (1, 2), ("x",)])
partitions = st.builds(
    Partitioning,
    counters=st.just({"memory": "8Gi"}),
    profiles=st.integers(1, 9).map(lambda count: (PartitionProfile("half", count, {"memory": "4Gi"}),)),
    whole=st.booleans(),
)
groups = st.builds(
    DeviceGroup,
    kind=st.sampled_from(["gpu", "nic"]),
    count=st.integers(1, 100),
    attributes=st.dictionaries(st.sampled_from(["a", "b"]), values),
    taints=taints,
    partitions=st.none() | partitions,
)
changes = st.builds(
    DeviceChange, devices=st.sampled_from([("gpu-1*",), ("nic-0",), ("*",)]), taints=taints, absent=st.booleans()
)
described = st.builds(
    Hardware, st.just("x"), st.lists(groups, max_size=3).map(tuple), st.lists(changes, max_size=2).map(tuple)
)


@settings(max_examples=40)
@given(described)
def test_slices_obey_all_limits_and_contain_each_device_once(hardware: Hardware) -> None:
    (here,) = pools(hardware, "worker")
    slices = for_node("gpu.example", Owner("worker", "u"), here.devices)
    assert find_problems(slices) == []
    assert names(slices) == [device.name for device in here.devices]
    assert {each["spec"]["pool"]["resourceSliceCount"] for each in slices} == {len(slices)}
    sets = [each["name"] for slice_ in slices for each in slice_["spec"].get("sharedCounters", ())]
    assert sorted(sets) == sorted({draw.counter_set for device in here.devices for draw in device.consumes_counters})


@settings(max_examples=40)
@given(described)
def test_slices_for_an_older_server_have_the_same_devices_with_the_counters_that_they_need(hardware: Hardware) -> None:
    (here,) = pools(hardware, "worker")
    slices = with_counters_beside_devices(for_node("gpu.example", Owner("worker", "u"), here.devices))
    assert names(slices) == [device.name for device in here.devices]
    assert {each["spec"]["pool"]["resourceSliceCount"] for each in slices} == {len(slices)}
    assert len({each["metadata"]["name"] for each in slices}) == len(slices)
    for each in slices:
        devices, sets = each["spec"].get("devices", []), each["spec"].get("sharedCounters", [])
        needed = {draw["counterSet"] for device in devices for draw in device.get("consumesCounters", ())}
        assert needed == {one["name"] for one in sets}
        assert sum(len(one["counters"]) for one in sets) <= 32
        assert len(devices) <= 128


def names(slices: list[Object]) -> list[str]:
    return [device["name"] for each in slices for device in each["spec"].get("devices", ())]


def slice_of(*devices: Object, **spec: object) -> Object:
    content = {"driver": "d", "nodeName": "n", "pool": {"name": "n", "resourceSliceCount": 1}, **spec}
    return {"metadata": {"name": "a"}, "spec": {**content, **({"devices": list(devices)} if devices else {})}}


def gpu(name: str = "gpu-0", **more: object) -> Object:
    return {"name": name, "attributes": {"index": {"int": 0}}, **more}


def shared(value: str = "8Gi", **policy: object) -> Object:
    return {"memory": {"value": value, "requestPolicy": {"default": "4Gi", **policy}}}


TAINT = {"key": "a", "effect": "NoSchedule"}
COUNTERS = {"name": "s", "counters": {"memory": {"value": "1"}}}


@pytest.mark.parametrize(
    ("slice_", "part"),
    [
        (slice_of(*(gpu(f"gpu-{i}") for i in range(129))), "129 devices, but may have 128"),
        (slice_of(*(gpu(f"gpu-{i}", taints=[TAINT] * (i == 7)) for i in range(65))), "65 devices, but may have 64"),
        (
            slice_of(*(gpu(f"gpu-{i}", attributes={"l": {"ints": [1]}}) for i in range(65))),
            "65 devices, but may have 64",
        ),
        (slice_of(gpu(), gpu()), "2 devices with the name gpu-0"),
        (slice_of(gpu("GPU")), "its name is not a DNS label"),
        (slice_of(gpu(attributes={f"a{i}": {"int": i} for i in range(33)})), "33 attributes and capacities"),
        (slice_of(gpu(attributes={"a-b": {"int": 1}})), "'a-b' is not a valid name of an attribute"),
        (slice_of(gpu(attributes={"a": {}})), "attribute a must have exactly one value"),
        (slice_of(gpu(attributes={"a": {"int": 1, "bool": True}})), "attribute a must have exactly one value"),
        (slice_of(gpu(attributes={"a": {"ints": list(range(49))}})), "more than 48 values"),
        (slice_of(gpu(taints=[TAINT] * 17)), "17 taints"),
        (slice_of(gpu(taints=[{**TAINT, "key": "a b"}])), "its taint 'a b' is malformed"),
        (slice_of(gpu(consumesCounters=[{"counterSet": "s", "counters": {}}])), "it consumes from"),
        (slice_of(sharedCounters=[COUNTERS] * 9), "9 counter sets, but may have 8"),
        (slice_of(sharedCounters=[{**COUNTERS, "name": "S"}]), "its counter set S is malformed"),
        (slice_of(gpu(), sharedCounters=[COUNTERS]), "it has both devices and sharedCounters"),
        (slice_of(gpu(), allNodes=True), "exactly one of nodeName, nodeSelector"),
        (slice_of(gpu(capacity=shared())), "a requestPolicy, which needs allowMultipleAllocations"),
        (
            slice_of(gpu(capacity=shared(value="1Gi"), allowMultipleAllocations=True)),
            "memory allows more than the capacity of 1Gi",
        ),
        (
            slice_of(gpu(capacity=shared(validValues=["1Gi", "8Gi"]), allowMultipleAllocations=True)),
            "a default that is not one of the validValues",
        ),
        (
            slice_of(gpu(capacity=shared(validRange={"min": "5Gi"}), allowMultipleAllocations=True)),
            "a default outside of validRange",
        ),
        (
            slice_of(gpu(capacity=shared(validRange={"min": "1Gi", "step": "2Gi"}), allowMultipleAllocations=True)),
            "not min plus a multiple of step",
        ),
        (slice_of(gpu(bindingConditions=["a"])), "it must have both bindingConditions and"),
        (slice_of(gpu(bindingConditions=["a"], bindingFailureConditions=["a"])), "all different"),
        (slice_of(gpu(bindingConditions=["a b"], bindingFailureConditions=["c"])), "label keys"),
        (slice_of(gpu(bindingConditions=list("abcde"), bindingFailureConditions=["x"])), "more than 4"),
        (
            slice_of(
                gpu(), nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]}
            ),
            "its nodeSelector has a requirement that has the operator 'Is'",
        ),
        (
            slice_of(gpu(), nodeSelector={"nodeSelectorTerms": []}),
            "its nodeSelector must be a node selector with exactly one term",
        ),
        ({**slice_of(gpu()), "metadata": {"name": "A"}}, "its name is not a DNS subdomain"),
    ],
)
def test_problems_that_an_api_server_would_report_are_found(slice_: Object, part: str) -> None:
    assert [problem for problem in find_problems([slice_]) if part in problem]


def test_a_valid_slice_has_no_problems() -> None:
    assert find_problems([slice_of(gpu(taints=[TAINT])), slice_of(sharedCounters=[COUNTERS])]) == []
