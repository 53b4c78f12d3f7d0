"""What claims wait for: devices with binding conditions of which nobody has said whether they are attached. Pure; for `attaching`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Object = dict[str, Any]
_KEY = ("driver", "pool", "device", "shareID")


@dataclass(frozen=True)
class Attachment:
    """One device that a claim waits for. The same device allocated once more is another attachment."""

    namespace: str
    name: str
    uid: str
    device_key: tuple[tuple[str, str], ...]
    conditions: tuple[str, ...]
    failure_conditions: tuple[str, ...]
    allocated: str

    @property
    def device(self) -> tuple[str, str]:
        """Pool and device."""
        place = dict(self.device_key)
        return place["pool"], place["device"]


def pending_attachments(claim: Mapping[str, Any], driver: str) -> list[Attachment]:
    """The devices of a claim of which nobody has said yet whether they are attached."""
    metadata, status = claim["metadata"], claim.get("status") or {}
    allocation = status.get("allocation") or {}
    if metadata.get("deletionTimestamp"):
        return []
    said = {_place(entry): entry.get("conditions") or [] for entry in status.get("devices") or []}
    return [
        Attachment(
            metadata["namespace"], metadata["name"], metadata["uid"], _place(result),
            tuple(result["bindingConditions"]), tuple(result.get("bindingFailureConditions") or ()),
            str(allocation.get("allocationTimestamp", "")),
        )
        for result in (allocation.get("devices") or {}).get("results") or []
        if result["driver"] == driver and _is_open(result, said.get(_place(result), []))
    ]  # fmt: skip


def status_entry(one: Attachment, *, failed: bool, now: datetime) -> Object:
    """The entry in the claim's status: what became of the attempt."""
    kinds, reason, message = (
        (one.failure_conditions[:1], "AttachingFailed", "the hardware file lets this attempt fail")
        if failed
        else (one.conditions, "Attached", "the device is attached")
    )
    condition = {
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {**dict(one.device_key), "conditions": [{"type": kind, **condition} for kind in kinds]}


def field_manager(driver: str, one: Attachment) -> str:
    """The field manager that speaks of one device. To leave out is to take back, so one for all devices would have to repeat each."""
    place = hashlib.sha256(json.dumps(one.device_key).encode()).hexdigest()
    return f"{driver}-attacher-{place[:12]}"


def _place(entry: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((key, entry[key]) for key in _KEY if entry.get(key))


def _is_open(result: Mapping[str, Any], said: Iterable[Mapping[str, Any]]) -> bool:
    conditions, failures = result.get("bindingConditions") or (), result.get("bindingFailureConditions") or ()
    true = {one["type"] for one in said if one["status"] == "True"}
    return bool(conditions) and not true.issuperset(conditions) and not true.intersection(failures)
