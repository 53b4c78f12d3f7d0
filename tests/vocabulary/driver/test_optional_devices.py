from __future__ import annotations

from typing import Any

import pytest

from fake_driver.hardware import hardware_file
from fake_driver.hardware.pools import pools
from fake_driver.publishing import slices
from testbed import folders
from testbed.drivers.published.slices import Device, Pool
from testbed.errors import DriverFailed, NothingToJudge
from testbed.vocabulary.driver import optional_devices

DRIVER = "d.example.com"


def _device(name: str, **spec: Any) -> tuple[Device, Any]:
    return Device(DRIVER, "pool", name), {"name": name, **spec}


def _draw(counter_set: str, **counters: int | str) -> list[Any]:
    return [{"counterSet": counter_set, "counters": {name: {"value": str(each)} for name, each in counters.items()}}]


def _pool(parts: dict[str, dict[str, int | str]], there: dict[str, int | str], name: str = "gpu-0") -> Pool:
    devices = [{"name": each, "consumesCounters": _draw(name, **takes)} for each, takes in parts.items()]
    sets = [{"name": name, "counters": _draw(name, **there)[0]["counters"]}]
    return Pool("pool", 1, 2, ({"spec": {"sharedCounters": sets}}, {"spec": {"devices": devices}}))


def _together(*pools: Pool) -> Pool:
    return Pool("pool", 1, 2, tuple(each for pool in pools for each in pool.slices))


PARTS: dict[str, dict[str, int | str]] = {
    "whole": {"compute": 7, "memory": "8Gi"},
    "small": {"compute": 1, "memory": "1Gi"},
    "large": {"compute": 4, "memory": "4Gi"},
    "other": {"compute": 4, "memory": "4Gi"},
}


def test_a_tainted_device() -> None:
    taints = [
        {"key": "k", "effect": "NoExecute"},
        {"key": "x", "value": "v", "effect": "NoSchedule", "timeAdded": "now"},
    ]
    found = optional_devices.tainted([_device("plain"), _device("bad", taints=taints)], "NoSchedule")
    assert (found.device.name, found.key, found.value, found.time_added) == ("bad", "x", "v", "now")


def test_a_driver_without_a_tainted_device_is_blamed() -> None:
    with pytest.raises(DriverFailed, match="no device that has a taint with effect NoExecute"):
        optional_devices.tainted([_device("plain", taints=[{"key": "k", "effect": "NoSchedule"}])], "NoExecute")


def test_shareable_devices() -> None:
    described = [_device("b", allowMultipleAllocations=True), _device("a", allowMultipleAllocations=True), _device("c")]
    assert [each.name for each in optional_devices.shareable(described)] == ["a", "b"]
    with pytest.raises(DriverFailed, match="no device that allows multiple allocations"):
        optional_devices.shareable([_device("c")])


@pytest.mark.parametrize(
    ("capacity", "share"),
    [({"value": "16Gi", "requestPolicy": {"default": "2Gi"}}, "2Gi"), ({"value": "16Gi"}, "16Gi")],
)
def test_the_default_share_of_a_capacity(capacity: Any, share: str) -> None:
    assert (
        optional_devices.default_share({"name": "a", "capacity": {f"{DRIVER}/memory": capacity}}, "memory", DRIVER)
        == share
    )
    assert (
        optional_devices.default_share({"name": "a", "capacity": {"memory": capacity}}, f"{DRIVER}/memory", DRIVER)
        == share
    )
    other = {"x.example/memory": {"value": "1Gi"}, "memory": capacity}
    assert optional_devices.default_share({"name": "a", "capacity": other}, "memory", DRIVER) == share


def test_a_missing_capacity_blames_the_driver() -> None:
    with pytest.raises(DriverFailed, match="device a has no capacity memory"):
        optional_devices.default_share({"name": "a"}, "memory", DRIVER)


def test_a_device_and_its_parts() -> None:
    pool = _pool(PARTS, PARTS["whole"])
    found = optional_devices.partitionable([pool], DRIVER)
    assert found.whole.name == "whole"
    assert [each.name for each in found.compatible_parts] == ["small", "large"]
    assert [each.name for each in found.conflicting_parts] == ["large", "other"]
    assert [each.missing_counters for each in optional_devices.counter_groups(pool, DRIVER)] == [frozenset()]


TWINS: dict[str, dict[str, int | str]] = {"a": {"compute": 1}, "b": {"compute": 1}}


def test_all_counter_sets_count() -> None:
    whole = _pool(PARTS, PARTS["whole"], "gpu-2")
    pools = [_pool(TWINS, {"compute": 7}, "gpu-0"), _pool({"only": {"compute": 7}}, {"compute": 7}, "gpu-1"), whole]
    for one in (pools, [_together(*pools)]):
        found = optional_devices.partitionable(one, DRIVER)
        assert (found.whole.name, found.compatible_parts[0].name, found.conflicting_parts[0].name) == (
            "whole",
            "small",
            "large",
        )


def test_two_pools_may_have_counter_sets_of_the_same_name() -> None:
    found = optional_devices.partitionable([_pool(TWINS, {"compute": 7}), _pool(TWINS, {"compute": 1})], DRIVER)
    assert [len(each.parts) for each in found.groups] == [2, 2]
    assert [each.whole is None for each in found.groups] == [True, False]


def test_parts_that_consume_two_counter_sets_have_to_fit_into_both() -> None:
    pool = _pool(TWINS, {"compute": 7}, "gpu-0")
    for device in pool.slices[1]["spec"]["devices"]:
        device["consumesCounters"] += _draw("links", out=1)
    pool.slices[0]["spec"]["sharedCounters"].append({"name": "links", "counters": _draw("links", out=1)[0]["counters"]})
    found = optional_devices.partitionable([pool], DRIVER)
    with pytest.raises(NothingToJudge):
        found.compatible_parts  # noqa: B018 - a property that raises


@pytest.mark.parametrize("parts", [PARTS, {"alone": PARTS["whole"]}])
def test_missing_counters_blame_the_driver(parts: Any) -> None:
    pool = _pool(parts, {"compute": 7})
    assert [each.missing_counters for each in optional_devices.counter_groups(pool, DRIVER)] == [{("gpu-0", "memory")}]
    with pytest.raises(DriverFailed, match="that it does not publish: gpu-0/memory"):
        optional_devices.partitionable([pool], DRIVER)


@pytest.mark.parametrize(
    ("parts", "kind", "problem"),
    [
        (TWINS, "whole", "excludes all others"),
        (TWINS, "conflicting_parts", "has two parts that exclude each other"),
        ({"whole": {"compute": 7}, "a": {"compute": 1}}, "compatible_parts", "be allocated together"),
        (
            {"whole": {"compute": 7}, "a": {"compute": 1}, "b": {"compute": 1}},
            "conflicting_parts",
            "exclude each other",
        ),
    ],
)
def test_missing_kinds_of_parts_leave_nothing_to_judge(parts: Any, kind: str, problem: str) -> None:
    found = optional_devices.partitionable([_pool(parts, {"compute": 7})], DRIVER)
    with pytest.raises(NothingToJudge, match=f"no device of the driver on this node .*{problem}"):
        getattr(found, kind)


def test_compatible_parts_without_a_whole() -> None:
    found = optional_devices.partitionable([_pool(TWINS, {"compute": 7})], DRIVER)
    assert [each.name for each in found.compatible_parts] == ["a", "b"]


def test_devices_without_common_counters_blame_the_driver() -> None:
    with pytest.raises(DriverFailed, match="consume the same counters"):
        optional_devices.partitionable([_pool({"alone": {"compute": 7}}, {"compute": 7})], DRIVER)


def test_the_default_hardware_has_all_kinds_of_parts() -> None:
    hardware = hardware_file.read(folders.data("manifests") / "hardware/server.yaml")
    here, *_ = pools(hardware, "node-1")
    made = slices.for_node(DRIVER, slices.Owner("node-1", "1"), here.devices)
    found = optional_devices.partitionable([Pool("node-1", 1, len(made), tuple(made))], DRIVER)
    assert found.whole not in found.compatible_parts
    assert found.whole not in found.conflicting_parts
