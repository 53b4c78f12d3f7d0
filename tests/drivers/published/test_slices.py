from __future__ import annotations

from typing import Any

import pytest

from fake_driver.hardware import hardware_file
from fake_driver.hardware.pools import devices
from fake_driver.publishing.slices import Owner, for_node
from testbed import folders
from testbed.drivers.published.slices import (
    pools,
    reserved_kinds,
    without_other_devices,
)
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
