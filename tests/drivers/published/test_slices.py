from __future__ import annotations

from typing import Any

import pytest

from fake_driver.hardware import hardware_file
from fake_driver.hardware.pools import devices
from fake_driver.publishing.slices import Owner, for_node
from testbed import folders
from testbed.drivers.published.slices import (
    Device,
    devices_by_attribute,
    devices_by_name,
    pools,
    reserved_kinds,
    without_other_devices,
)
from testbed.errors import UsageError
from testbed.kube.client import Object
from testbed.models.driver_file import load_driver_file
from tests.fakes.cluster import DRIVER, slice_spec


def _slice(node: str, devices: int = 1, **pool: int) -> Object:
    return {"metadata": {"name": node}, "spec": slice_spec(node, devices, **pool)}


def test_a_pool_is_complete_with_all_its_slices() -> None:
    half = _slice("a", resourceSliceCount=2)
    assert [pool.complete for pool in pools([half], DRIVER)] == [False]
    assert [pool.complete for pool in pools([half, half], DRIVER)] == [True]


def test_slices_of_older_generations_do_not_count() -> None:
    old, new = _slice("a", 5, generation=1), _slice("a", 2, generation=2)
    (pool,) = pools([old, new], DRIVER)
    assert (pool.generation, pool.devices, pool.complete) == (2, 2, True)


def test_slices_of_other_drivers_do_not_count() -> None:
    assert pools([_slice("a")], "other.example") == []


def test_a_network_attached_pool_has_no_node() -> None:
    spec = {key: value for key, value in slice_spec("net", 0).items() if key not in ("nodeName", "devices")}
    (pool,) = pools([{"spec": {**spec, "allNodes": True}}], DRIVER)
    assert (pool.nodes, pool.devices) == (frozenset(), 0)


def test_devices_are_found_by_an_attribute() -> None:
    known = devices_by_attribute([_slice("a", 2)], DRIVER, "uuid")
    assert known == {"a-uuid-0": Device(DRIVER, "a", "gpu-0"), "a-uuid-1": Device(DRIVER, "a", "gpu-1")}


def test_the_attribute_may_have_a_domain_and_any_type() -> None:
    device = {"name": "gpu-0", "attributes": {"index": {"int": 7}}}
    spec = {**slice_spec("a", 0), "devices": [device]}
    assert list(devices_by_attribute([{"spec": spec}], DRIVER, f"{DRIVER}/index")) == ["7"]
    assert str(Device(DRIVER, "a", "gpu-0")) == f"{DRIVER}/a/gpu-0"


def test_devices_are_found_by_name_on_a_node() -> None:
    published = [_slice("a"), _slice("b")]

    assert devices_by_name(published, DRIVER, "a", ["gpu-0"]) == {"gpu-0": Device(DRIVER, "a", "gpu-0")}
    assert devices_by_name(published, DRIVER, "b", ["gpu-0"]) == {"gpu-0": Device(DRIVER, "b", "gpu-0")}


def test_network_attached_devices_are_found_by_name_on_every_node() -> None:
    spec = {key: value for key, value in slice_spec("net", 1).items() if key != "nodeName"}
    known = devices_by_name([{"spec": {**spec, "allNodes": True}}], DRIVER, "a", ["gpu-0"])

    assert known == {"gpu-0": Device(DRIVER, "net", "gpu-0")}


def _in_pool(name: str, *nodes: str, devices: int = 1) -> list[Object]:
    """Return a pool with a slice for each of these nodes."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": len(nodes)}
    return [{"spec": {**slice_spec(node, devices), "pool": pool}} for node in nodes]


def test_a_shown_name_of_two_devices_is_ambiguous() -> None:
    with pytest.raises(UsageError, match="gpu-0 of a container on node a is ambiguous: pool a and pool more have one"):
        devices_by_name([_slice("a"), *_in_pool("more", "a")], DRIVER, "a", ["gpu-0"])


def test_a_name_of_two_devices_that_is_not_shown_is_ignored() -> None:
    known = devices_by_name([_slice("a"), *_in_pool("more", "a", devices=2)], DRIVER, "a", ["gpu-1"])

    assert known["gpu-1"] == Device(DRIVER, "more", "gpu-1")


def test_devices_of_a_pool_belong_to_the_nodes_of_their_slices() -> None:
    here, there = _in_pool("all", "a", "b", devices=2)
    del here["spec"]["devices"][1], there["spec"]["devices"][0]

    assert devices_by_name([here, there], DRIVER, "a", ["gpu-0"]) == {"gpu-0": Device(DRIVER, "all", "gpu-0")}


def test_a_device_that_is_published_twice_is_not_ambiguous() -> None:
    assert devices_by_name(_in_pool("a", "a", "a"), DRIVER, "a", ["gpu-0"]) == {"gpu-0": Device(DRIVER, "a", "gpu-0")}


@pytest.mark.parametrize(
    ("name", "patterns", "matches"),
    [
        ("type", {"type": ["mig", "vfio*"]}, True),
        (f"{DRIVER}/type", {"type": ["*"]}, True),
        ("type", {"type": ["gpu"]}, False),
        ("other", {"type": ["*"]}, False),
        ("type", {}, False),
    ],
)
def test_devices_are_excluded_by_an_attribute(name: str, patterns: Any, matches: bool) -> None:
    device = {"name": "gpu-0", "attributes": {name: {"string": "mig"}}}
    slice_ = {"spec": {"driver": DRIVER, "devices": [device]}}
    (left,) = without_other_devices([slice_], patterns, DRIVER)
    assert left["spec"]["devices"] == ([] if matches else [device])


_SHARED, _PART = {"allowMultipleAllocations": True}, {"consumesCounters": [{"counterSet": "c", "counters": {}}]}
_ATTACHED = {"bindingConditions": ["attached"]}


@pytest.mark.parametrize(
    ("ordinary", "others", "found"),
    [
        ([{}], [_SHARED, _PART, _ATTACHED], {"capacity", "partitions", "binding"}),
        ([{}], [_SHARED], {"capacity"}),
        ([{}, _PART], [_SHARED, _PART], {"capacity"}),
        ([{}], [_SHARED, _PART, {**_PART, **_ATTACHED}], {"capacity"}),
        ([_SHARED], [], set()),
        ([{}], [{**_SHARED, "allowMultipleAllocations": False}], set()),
    ],
    ids=["all", "one", "an-ordinary-partition", "of-two-kinds", "none-is-excluded", "none"],
)
def test_a_kind_is_reserved_if_no_ordinary_device_has_it(
    ordinary: list[Object], others: list[Object], found: set[str]
) -> None:
    named = [*ordinary, *({**each, "attributes": {"type": {"string": "special"}}} for each in others)]
    published = [{"name": f"gpu-{index}", **each} for index, each in enumerate(named)]
    assert reserved_kinds([{"spec": {"driver": DRIVER, "devices": published}}], {"type": ["special"]}, DRIVER) == found


def test_the_default_hardware_has_all_reserved_kinds() -> None:
    made = devices(hardware_file.read(folders.data("manifests") / "hardware/server.yaml"), "a")
    published = for_node(DRIVER, Owner("a", "uid"), made)
    others = load_driver_file(folders.data("manifests") / "drivers/fake-gpu.yaml").other_devices
    assert reserved_kinds(published, others, DRIVER) == {"partitions", "capacity", "binding"}
    assert reserved_kinds(published, {}, DRIVER) == frozenset()
