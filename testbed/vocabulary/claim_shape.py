"""Gives the claims of a manifest the shape that the driver file declares (`devices.claim`), so that the driver accepts them.

Manifests contain the plainest claim. A count, a selector or a configuration that a manifest writes itself is kept. Used by `scenario`.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator

from testbed.kube.client import Object
from testbed.models.driver_file import DriverFile

ADDED = "with-"  # begins the names of the requests that are added for `devices.claim.with`
_CHOOSING = ("device.attributes[", "device.capacity[")
_SPECS = {"ResourceClaim": ("spec",), "ResourceClaimTemplate": ("spec", "spec")}


def with_claim_shape(manifest: Object, driver_file: DriverFile, of_companions: Collection[str] = ()) -> Object:
    """Return a ResourceClaim, its template or an allocation in the declared shape. Other objects are unchanged.

    `of_companions` are the classes of other drivers: requests for them, or for devices with an optional feature, keep their count.
    """
    shape = driver_file.devices.claim
    if shape.is_plain or manifest["kind"] not in _SPECS:
        return manifest
    made = copy.deepcopy(manifest)
    requests = _requests(made, of_companions)
    for each in _exact(requests):
        if each["deviceClassName"] not in _special(driver_file):
            each.update({} if {"count", "allocationMode"} & each.keys() or _chooses(each) else shape.request)
    if requests:
        _add_classes(_devices(made), shape.with_)
    if shape.configuration == "required" and (requests or _allocation(made)):
        _add_configuration(made, driver_file)
    return made


def is_added(request: str) -> bool:
    """Return True if a request was added for `devices.claim.with`."""
    return request.startswith(ADDED)


def _special(driver_file: DriverFile) -> set[str]:
    return {name for name in driver_file.classes.model_dump().values() if name}


def _devices(manifest: Object) -> Object:
    found = manifest
    for key in _SPECS[manifest["kind"]]:
        found = found.get(key) or {}
    return found.get("devices") or {}


def _requests(manifest: Object, of_companions: Collection[str]) -> list[Object]:
    """Return the requests of a claim, without those for other drivers."""
    found = _devices(manifest).get("requests") or []
    return [one for one in found if any(each["deviceClassName"] not in of_companions for each in _exact([one]))]


def _exact(requests: Collection[Object]) -> Iterator[Object]:
    """Yield the part of each request, and of each of its alternatives, that has a class."""
    for one in requests:
        parts = [*filter(None, [one.get("exactly")]), *(one.get("firstAvailable") or ())]
        yield from (each for each in parts if "deviceClassName" in each)


def _chooses(request: Object) -> bool:
    """Return True if a request selects devices by their attributes or capacity: more than one may not fit."""
    return any(word in str(request.get("selectors")) for word in _CHOOSING)


def _add_classes(devices: Object, classes: Collection[str]) -> None:
    requested = {each["deviceClassName"] for each in _exact(devices["requests"])}
    names = [each["name"] for each in devices["requests"]]
    for each in devices.get("constraints") or ():
        each.setdefault("requests", names)  # otherwise they would hold for the added requests too
    missing = [name for name in classes if name not in requested]
    devices["requests"] += [
        {"name": f"{ADDED}{number}", "exactly": {"deviceClassName": name}} for number, name in enumerate(missing)
    ]


def _add_configuration(manifest: Object, driver_file: DriverFile) -> None:
    """Add the configuration `one`, unless the claim configures devices of this driver itself."""
    configuration = driver_file.configuration
    if not configuration or not configuration.one:
        return
    allocation = _allocation(manifest)
    devices = allocation if allocation is not None else _devices(manifest)
    entries = devices.setdefault("config", [])
    if not any(each["opaque"]["driver"] == driver_file.driver for each in entries):
        source = {} if allocation is None else {"source": "FromClaim"}
        opaque = {"driver": driver_file.driver, "parameters": configuration.one.parameters}
        entries.append({**source, "opaque": opaque})


def _allocation(manifest: Object) -> Object | None:
    """Return the devices of the allocation in a manifest of a status; None for other manifests."""
    allocation: Object = (manifest.get("status") or {}).get("allocation") or {}
    return allocation.get("devices")
