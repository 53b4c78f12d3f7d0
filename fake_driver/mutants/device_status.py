"""Drivers that tell others something wrong of devices in use: in a claim's status, or as their health."""

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
    """Nobody but the container learns what became of a device."""
    return replace(parts, writes_status=False)


def status_of_another_device(parts: Parts) -> Parts:
    """The status speaks of the device before the one that is meant, or of the last one."""
    devices = parts.inventory.devices

    def status_data(device: Device, use: AllocatedDevice) -> dict[str, Any]:
        return parts.status_data(devices[devices.index(device) - 1] if device in devices else device, use)

    return replace(parts, status_data=status_data)


def status_message_of_another_device(parts: Parts) -> Parts:
    """What the status says of a device is right, but its words for people name the device before it."""
    devices = parts.inventory.devices

    def status_data(device: Device, use: AllocatedDevice) -> dict[str, Any]:
        other = devices[devices.index(device) - 1] if device in devices else device
        said = {"type": "Ready", "status": "True", "reason": "Fault", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        wrong = {**said, "message": " ".join(map(str, other.attributes.values()))}
        return {**parts.status_data(device, use), "conditions": [wrong]}

    return replace(parts, status_data=status_data)


def status_says_not_ready(parts: Parts) -> Parts:
    """Of devices that are prepared the status says that they are not ready."""

    def status_data(device: Device, use: AllocatedDevice) -> dict[str, Any]:
        when = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
        wrong = {"type": "Ready", "status": "False", "reason": "Fault", "message": "fault status-says-not-ready"}
        return {**parts.status_data(device, use), "conditions": [{**wrong, **when}]}

    return replace(parts, status_data=status_data)


class _WholeClaims(ClaimClient):
    """Knows no server-side apply."""

    def apply(self, namespace: str, name: str, uid: str, devices: Sequence[Object], manager: str) -> Object:
        """Read a claim, and write it back with these devices as all that is said."""
        there = self.get(namespace, name)
        metadata, status = {**there["metadata"], "uid": uid}, {**there["status"], "devices": list(devices)}
        where = url_path("apis", GROUP, self._version, "namespaces", namespace, "resourceclaims", name, "status")
        return self._api.replace(where, {**there, "metadata": metadata, "status": status}, {"fieldManager": manager})


def status_replaces_all(parts: Parts) -> Parts:
    """The driver writes all that is said of a claim's devices anew, so that the words of others are lost."""
    return replace(parts, claim_client=_WholeClaims)


ALL = (
    status_never_written,
    status_of_another_device,
    status_message_of_another_device,
    status_says_not_ready,
    status_replaces_all,
)
