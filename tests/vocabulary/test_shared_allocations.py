"""Allocations that tests write have the shares that the scheduler would add."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.vocabulary.shared_allocations import with_shares

SHARED = {"name": "numa-0", "allowMultipleAllocations": True, "capacity": {"acme/cpu": {"value": "8"}}}
OWN = {"name": "gpu-0", "capacity": {"acme/memory": {"value": "8Gi"}}}


def claim(device: str, driver: str = "acme") -> dict[str, Any]:
    results = [{"request": "r", "driver": driver, "pool": "node-1", "device": device}]
    allocation = {"devices": {"results": results}}
    return {"metadata": {"name": "c", "namespace": "n"}, "status": {"allocation": allocation}}


def completed(document: dict[str, Any], *devices: dict[str, Any]) -> dict[str, Any]:
    found = with_shares(document, "acme", lambda: [{"spec": {"devices": list(devices)}}])
    (result,) = found["status"]["allocation"]["devices"]["results"]
    return dict(result)


@pytest.mark.parametrize("device", ["numa-0", "no-such-device"])
def test_a_shared_device_gets_its_capacity_and_a_share_id(device: str) -> None:
    first, again = completed(claim(device), SHARED), completed(claim(device), SHARED)

    assert first["consumedCapacity"] == {"acme/cpu": "8"}
    assert first["shareID"] == again["shareID"]


def test_the_policy_of_the_device_has_the_default() -> None:
    policy = {**SHARED, "capacity": {"acme/cpu": {"value": "8", "requestPolicy": {"default": "2"}}}}

    assert completed(claim("numa-0"), policy)["consumedCapacity"] == {"acme/cpu": "2"}


@pytest.mark.parametrize("document", [claim("gpu-0"), claim("numa-0", driver="other")])
def test_other_devices_stay_unchanged(document: dict[str, Any]) -> None:
    assert completed(document, OWN, SHARED).keys() == {"request", "driver", "pool", "device"}


def test_objects_without_an_allocation_need_no_slices() -> None:
    pod = {"metadata": {"name": "p"}}

    assert with_shares(pod, "acme", lambda: pytest.fail("slices were read")) == pod
