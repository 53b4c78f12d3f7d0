from typing import Any

import pytest

from fake_driver.hardware.model import Device, Row, Version
from fake_driver.slices import MOST_DEVICES, Owner, desired

NODE = Owner("worker", "node-uid")
DRIVER = "gpu.example"
Object = dict[str, Any]


def gpus(count: int, model: str = "a") -> tuple[Device, ...]:
    return tuple(Device(f"gpu-{index}", "gpu", {"model": model}, {"memory": "80Gi"}) for index in range(count))


def wanted(count: int, model: str = "a") -> list[Object]:
    return desired(DRIVER, NODE, gpus(count, model))


def test_a_slice_says_all_of_a_device() -> None:
    attributes: Row = {"s": "x", "i": 1, "b": False, "v": Version("1.2.3")}
    (slice_,) = desired(DRIVER, NODE, (Device("gpu-0", "gpu", attributes, {"memory": "80Gi"}),))
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
def test_devices_are_split_over_as_few_slices_as_can_be(count: int, slices: int) -> None:
    parts = wanted(count)
    assert len(parts) == slices
    assert all(len(part["spec"].get("devices", [])) <= MOST_DEVICES for part in parts)
    assert {part["spec"]["pool"]["resourceSliceCount"] for part in parts} == {slices}
    assert sum(len(part["spec"].get("devices", [])) for part in parts) == count
    assert [part["metadata"]["name"] for part in parts] == sorted(part["metadata"]["name"] for part in parts)


def test_long_names_stay_within_what_the_api_allows_and_differ() -> None:
    nodes = [Owner("n" * 250 + end, "u") for end in ("a", "b")]
    names = [desired("d" * 63, node, ())[0]["metadata"]["name"] for node in nodes]
    assert len(set(names)) == 2
    assert all(len(name) <= 253 for name in names)
