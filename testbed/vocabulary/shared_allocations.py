"""Completes allocations that tests write: the scheduler adds a share to each device that several claims can use. Pure; for Scenario."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable

from testbed.kube.client import Object


def with_shares(document: Object, driver: str, slices: Callable[[], Iterable[Object]]) -> Object:
    """Return a claim whose allocated devices of the driver have a share ID and the consumed capacity, as the scheduler writes them.

    They are those of a claim that requests no amount. Other objects, and devices that only one claim can use, stay unchanged.
    """
    results = _results(document)
    if not any(each.get("driver") == driver for each in results):
        return document
    devices = [device for each in slices() for device in each["spec"].get("devices", ())]
    metadata = document["metadata"]
    for each in (each for each in results if each.get("driver") == driver and "consumedCapacity" not in each):
        device = _like(each["device"], devices)
        if device.get("allowMultipleAllocations"):
            owner = f"{metadata.get('namespace', '')}/{metadata['name']}/{each['pool']}/{each['device']}"
            each["shareID"] = str(uuid.uuid5(uuid.NAMESPACE_URL, owner))
            each["consumedCapacity"] = {name: _default(value) for name, value in device.get("capacity", {}).items()}
    return document


def _results(document: Object) -> list[Object]:
    allocation: Object = document.get("status", {}).get("allocation") or {}
    return list(allocation.get("devices", {}).get("results") or ())


def _like(name: str, devices: list[Object]) -> Object:
    """Return the device of this name, or any other one if the allocation names a device that does not exist."""
    return next((each for each in devices if each["name"] == name), devices[0] if devices else {})


def _default(capacity: Object) -> str:
    return str(capacity.get("requestPolicy", {}).get("default", capacity["value"]))
