"""Drivers that write a wrong device status into claims, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fake_driver.api.claim_client import ClaimClient
from fake_driver.api.client import Object, url_path
from fake_driver.api.served_versions import GROUP
from fake_driver.devices.model import Device
from fake_driver.preparing.claims import AllocatedDevice
from fake_driver.roles.node_driver import Parts


def status_never_written(parts: Parts) -> Parts:
    """The device status is never written."""
    return replace(parts, writes_status=False)


def status_of_another_device(parts: Parts) -> Parts:
    """The device status has the data of another device."""
    devices = parts.inventory.devices

    def status_data(device: Device, allocated: AllocatedDevice) -> dict[str, Any]:
        return parts.status_data(devices[devices.index(device) - 1] if device in devices else device, allocated)

    return replace(parts, status_data=status_data)


def status_message_of_another_device(parts: Parts) -> Parts:
    """The message of the Ready condition has the attributes of another device."""
    devices = parts.inventory.devices

    def status_data(device: Device, allocated: AllocatedDevice) -> dict[str, Any]:
        other = devices[devices.index(device) - 1] if device in devices else device
        condition = {"type": "Ready", "status": "True", "reason": "Fault", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        wrong = {**condition, "message": " ".join(map(str, other.attributes.values()))}
        return {**parts.status_data(device, allocated), "conditions": [wrong]}

    return replace(parts, status_data=status_data)


def status_says_not_ready(parts: Parts) -> Parts:
    """The Ready condition of prepared devices is False."""

    def status_data(device: Device, allocated: AllocatedDevice) -> dict[str, Any]:
        when = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
        wrong = {"type": "Ready", "status": "False", "reason": "Fault", "message": "fault status-says-not-ready"}
        return {**parts.status_data(device, allocated), "conditions": [{**wrong, **when}]}

    return replace(parts, status_data=status_data)


class _WholeClaims(ClaimClient):
    """A client that replaces the whole status instead of applying its own entries."""

    def apply(self, namespace: str, name: str, uid: str, devices: Sequence[Object], manager: str) -> Object:
        """Read the claim, and write it back with these devices as the whole device status."""
        claim = self.get(namespace, name)
        metadata, status = {**claim["metadata"], "uid": uid}, {**claim["status"], "devices": list(devices)}
        where = url_path("apis", GROUP, self._version, "namespaces", namespace, "resourceclaims", name, "status")
        return self._api.replace(where, {**claim, "metadata": metadata, "status": status}, {"fieldManager": manager})


def status_replaces_all(parts: Parts) -> Parts:
    """The driver replaces the whole device status of a claim, so entries of other writers are lost."""
    return replace(parts, claim_client=_WholeClaims)


ALL = (
    status_never_written,
    status_of_another_device,
    status_message_of_another_device,
    status_says_not_ready,
    status_replaces_all,
)
