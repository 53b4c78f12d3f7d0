"""The attachments that claims wait for, and the status entries that report them. Pure; the attach controller uses them."""

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
    """An allocated device with binding conditions that are not set yet. The same device, allocated again, is another attachment."""

    namespace: str
    name: str
    uid: str
    device_key: tuple[tuple[str, str], ...]
    conditions: tuple[str, ...]
    failure_conditions: tuple[str, ...]
    allocated: str

    @property
    def device(self) -> tuple[str, str]:
        """The pool and the name of the device."""
        key = dict(self.device_key)
        return key["pool"], key["device"]


def pending_attachments(claim: Mapping[str, Any], driver: str) -> list[Attachment]:
    """Return the attachments that a claim waits for: neither all binding conditions nor a failure condition are true."""
    metadata, status = claim["metadata"], claim.get("status") or {}
    allocation = status.get("allocation") or {}
    if metadata.get("deletionTimestamp"):
        return []
    reported = {_device_key(entry): entry.get("conditions") or [] for entry in status.get("devices") or []}
    return [
        Attachment(
            metadata["namespace"], metadata["name"], metadata["uid"], _device_key(result),
            tuple(result["bindingConditions"]), tuple(result.get("bindingFailureConditions") or ()),
            str(allocation.get("allocationTimestamp", "")),
        )
        for result in (allocation.get("devices") or {}).get("results") or []
        if result["driver"] == driver and _is_pending(result, reported.get(_device_key(result), []))
    ]  # fmt: skip


def status_entry(attachment: Attachment, *, failed: bool, now: datetime) -> Object:
    """Return the entry in the claim's status that reports the result of an attempt."""
    kinds, reason, message = (
        (attachment.failure_conditions[:1], "AttachingFailed", "this attempt fails because the hardware file says so")
        if failed
        else (attachment.conditions, "Attached", "the device is attached")
    )
    condition = {
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {**dict(attachment.device_key), "conditions": [{"type": kind, **condition} for kind in kinds]}


def field_manager(driver: str, attachment: Attachment) -> str:
    """Return the field manager for one device. A manager for all devices would have to apply all entries each time, or remove them."""
    digest = hashlib.sha256(json.dumps(attachment.device_key).encode()).hexdigest()
    return f"{driver}-attacher-{digest[:12]}"


def _device_key(entry: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((key, entry[key]) for key in _KEY if entry.get(key))


def _is_pending(result: Mapping[str, Any], reported: Iterable[Mapping[str, Any]]) -> bool:
    conditions, failures = result.get("bindingConditions") or (), result.get("bindingFailureConditions") or ()
    true = {one["type"] for one in reported if one["status"] == "True"}
    return bool(conditions) and not true.issuperset(conditions) and not true.intersection(failures)
