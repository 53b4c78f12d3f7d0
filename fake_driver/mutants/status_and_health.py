"""Drivers that write a wrong device status into claims, or report a wrong health of devices to the kubelet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fake_driver.api.claim_client import ClaimClient
from fake_driver.api.client import Object, url_path
from fake_driver.api.served_versions import GROUP
from fake_driver.devices.health import UNKNOWN, Health, HealthStore, Key
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
        message = " ".join(map(str, other.attributes.values()))
        return {**parts.status_data(device, allocated), "conditions": [_ready(message)]}

    return replace(parts, status_data=status_data)


def status_sentence_about_another_device(parts: Parts) -> Parts:
    """The message of the Ready condition is a sentence that names another device in parentheses, with punctuation around the name."""
    devices = parts.inventory.devices

    def status_data(device: Device, allocated: AllocatedDevice) -> dict[str, Any]:
        other = devices[devices.index(device) - 1] if device in devices else device
        named = "; ".join(f"{name}={value}" for name, value in other.attributes.items())
        return {**parts.status_data(device, allocated), "conditions": [_ready(f"The device ({named}) is ready.")]}

    return replace(parts, status_data=status_data)


def status_says_not_ready(parts: Parts) -> Parts:
    """The Ready condition of prepared devices is False."""

    def status_data(device: Device, allocated: AllocatedDevice) -> dict[str, Any]:
        wrong = {**_ready("fault status-says-not-ready"), "status": "False"}
        return {**parts.status_data(device, allocated), "conditions": [wrong]}

    return replace(parts, status_data=status_data)


def _ready(message: str) -> Object:
    """Return the condition Ready with this message."""
    times = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"type": "Ready", "status": "True", "reason": "Fault", "message": message, **times}


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


def health_unknown(parts: Parts) -> Parts:
    """The health of all devices is reported as unknown."""
    return replace(parts, initial_health=lambda _device: Health(UNKNOWN))


def health_unknown_after_a_restart(parts: Parts) -> Parts:
    """After a restart of the driver, the health of all devices is reported as unknown."""
    started = parts.data / "health-was-found-out"
    is_first_start = not started.exists()
    started.touch()
    return parts if is_first_start else health_unknown(parts)


def health_always_well(parts: Parts) -> Parts:
    """Unhealthy devices are reported as healthy."""
    return replace(parts, initial_health=lambda _device: Health())


def health_told_once(parts: Parts) -> Parts:
    """The health of a device never changes after the driver has started."""
    return replace(parts, health_store=_WriteOnce)


class _WriteOnce(HealthStore):
    def set(self, key: Key, health: Health) -> None:
        """Ignore a device that has a health."""
        if key not in self._health:
            super().set(key, health)


def health_without_words(parts: Parts) -> Parts:
    """The reported health has no message."""
    return replace(parts, initial_health=lambda device: replace(parts.initial_health(device), message=""))


ALL = (
    status_never_written,
    status_of_another_device,
    status_message_of_another_device,
    status_sentence_about_another_device,
    status_says_not_ready,
    status_replaces_all,
    health_unknown,
    health_unknown_after_a_restart,
    health_always_well,
    health_told_once,
    health_without_words,
)
