"""Drivers that report the wrong health of devices to the kubelet."""

from __future__ import annotations

from dataclasses import replace

from fake_driver.devices.health import UNKNOWN, Health, HealthStore, Key
from fake_driver.roles.node_driver import Parts


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
    health_unknown,
    health_unknown_after_a_restart,
    health_always_well,
    health_told_once,
    health_without_words,
)
