"""The device status that the driver writes to `status.devices` of a claim. Pure; the status reporter applies it.

The API server removes it when the claim is deallocated, so the driver need not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from fake_driver.devices.model import Device, Value, Version
from fake_driver.preparing.claims import AllocatedDevice, PreparedClaim
from fake_driver.preparing.opaque_configuration import INTERFACE, IPS

Object = dict[str, Any]
StatusData = Callable[[Device, AllocatedDevice], Object]
_KEY = ("driver", "pool", "device", "shareID")


def status_data(device: Device, allocated: AllocatedDevice) -> Object:
    """Return the data of an allocated device: its attributes, and its network interface if it has one."""
    data = {"data": {name: _plain(device.attributes[name]) for name in sorted(device.attributes)}}
    if not device.network:
        return data
    configured = allocated.facts.get(IPS)
    network = {
        "interfaceName": allocated.facts.get(INTERFACE, device.network.interface),
        "ips": configured.split(",") if configured else list(device.network.ips),
        "hardwareAddress": device.network.hardware_address,
    }
    return {**data, "networkData": {name: value for name, value in network.items() if value}}


def entries(
    claim: PreparedClaim,
    driver: str,
    served: Mapping[str, Any],
    data_of: Callable[[AllocatedDevice], Object],
    now: datetime,
) -> list[Object]:
    """Return the status entries of a claim's devices. `served` is the claim with its present status."""
    present = {_key(entry): entry for entry in served.get("status", {}).get("devices") or []}
    found: dict[tuple[Any, ...], Object] = {}
    for allocated in claim.devices:
        identity = _identity(driver, allocated)
        conditions = [_ready(present.get(_key(identity), {}), now)]
        # A claim may have a device twice, once with admin access, but the status has one entry for it.
        found.setdefault(_key(identity), {**identity, "conditions": conditions, **data_of(allocated)})
    return list(found.values())


def missing(wanted: list[Object], claim: Mapping[str, Any]) -> list[str]:
    """Return the paths of wanted values that the claim's status does not have."""
    present = {_key(entry): entry for entry in claim.get("status", {}).get("devices") or []}
    return [
        path
        for entry in wanted
        for path in _missing(entry, present.get(_key(entry)), f"status.devices[{entry['device']}]")
    ]


def _missing(wanted: Any, present: Any, path: str) -> Iterator[str]:
    if path.endswith(".conditions") and isinstance(present, list):
        wanted, present = ({each["type"]: each for each in conditions} for conditions in (wanted, present))
    if isinstance(wanted, Mapping) and isinstance(present, Mapping):
        for name, inner in wanted.items():
            yield from _missing(inner, present.get(name), f"{path}.{name}")
    elif wanted != present:
        yield path


def _ready(before: Object, now: datetime) -> Object:
    """Return the Ready condition. It keeps its transition time, so that writing it again changes nothing."""
    since = (
        each["lastTransitionTime"]
        for each in before.get("conditions") or []
        if (each["type"], each["status"]) == ("Ready", "True")
    )
    return {
        "type": "Ready",
        "status": "True",
        "reason": "Prepared",
        "message": "the device is prepared for containers",
        "lastTransitionTime": next(since, now.strftime("%Y-%m-%dT%H:%M:%SZ")),
    }


def _identity(driver: str, allocated: AllocatedDevice) -> Object:
    identity: Object = {"driver": driver, "pool": allocated.pool, "device": allocated.device}
    return {**identity, "shareID": allocated.share_id} if allocated.share_id else identity


def _key(entry: Object) -> tuple[Any, ...]:
    return tuple(entry.get(name) for name in _KEY)


def _plain(value: Value) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.text if isinstance(value, Version) else value
