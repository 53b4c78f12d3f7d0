"""What the driver says of prepared devices in `status.devices` of their claim. Pure; the reporter writes it.

The API server removes it together with the allocation, so nobody has to clean up.
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
Find = Callable[[str, str], Device]
_KEY = ("driver", "pool", "device", "shareID")


def status_data(device: Device, use: AllocatedDevice) -> Object:
    """What is known of a device: its attributes, and the network that a container finds behind it."""
    data = {"data": {name: _plain(device.attributes[name]) for name in sorted(device.attributes)}}
    if not device.network:
        return data
    configured = use.facts.get(IPS)
    network = {
        "interfaceName": use.facts.get(INTERFACE, device.network.interface),
        "ips": configured.split(",") if configured else list(device.network.ips),
        "hardwareAddress": device.network.hardware_address,
    }
    return {**data, "networkData": {name: value for name, value in network.items() if value}}


def entries(
    claim: PreparedClaim,
    driver: str,
    served: Mapping[str, Any],
    status_data: Callable[[AllocatedDevice], Object],
    now: datetime,
) -> list[Object]:
    """The entries of a claim's devices; `known` says what is known of each, `served` is the claim as it is."""
    there = {_key(entry): entry for entry in served.get("status", {}).get("devices") or []}
    found: dict[tuple[Any, ...], Object] = {}
    for use in claim.devices:
        place = _place(driver, use)
        # Who looks on at a device of its own claim has it twice there, but the status has room for it once.
        found.setdefault(
            _key(place), {**place, "conditions": [_ready(there.get(_key(place), {}), now)], **status_data(use)}
        )
    return list(found.values())


def missing(wanted: list[Object], claim: Mapping[str, Any]) -> list[str]:
    """Paths of what is wanted in a claim's status and is not there."""
    there = {_key(entry): entry for entry in claim.get("status", {}).get("devices") or []}
    return [
        path
        for entry in wanted
        for path in _missing(entry, there.get(_key(entry)), f"status.devices[{entry['device']}]")
    ]


def _missing(wanted: Any, there: Any, path: str) -> Iterator[str]:
    if path.endswith(".conditions") and isinstance(there, list):
        wanted, there = ({one["type"]: one for one in some} for some in (wanted, there))
    if isinstance(wanted, Mapping) and isinstance(there, Mapping):
        for name, inner in wanted.items():
            yield from _missing(inner, there.get(name), f"{path}.{name}")
    elif wanted != there:
        yield path


def _ready(before: Object, now: datetime) -> Object:
    """The condition; the time is that of the change, so telling it twice changes nothing."""
    since = (
        one["lastTransitionTime"]
        for one in before.get("conditions") or []
        if (one["type"], one["status"]) == ("Ready", "True")
    )
    return {
        "type": "Ready",
        "status": "True",
        "reason": "Prepared",
        "message": "the device is prepared for containers",
        "lastTransitionTime": next(since, now.strftime("%Y-%m-%dT%H:%M:%SZ")),
    }


def _place(driver: str, use: AllocatedDevice) -> Object:
    place: Object = {"driver": driver, "pool": use.pool, "device": use.device}
    return {**place, "shareID": use.share_id} if use.share_id else place


def _key(entry: Object) -> tuple[Any, ...]:
    return tuple(entry.get(name) for name in _KEY)


def _plain(value: Value) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.text if isinstance(value, Version) else value
