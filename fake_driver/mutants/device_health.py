"""Drivers that report the wrong health of devices to the kubelet."""

from __future__ import annotations

from dataclasses import replace

from fake_driver.devices.health import UNKNOWN, Health, HealthStore, Key
from fake_driver.roles.node_driver import Parts


def health_unknown(parts: Parts) -> Parts:
    """Nobody learns how the devices are."""
    return replace(parts, initial_health=lambda _device: Health(UNKNOWN))


def health_unknown_after_a_restart(parts: Parts) -> Parts:
    """Only the first process on a node finds out how the devices are."""
    found_out = parts.data / "health-was-found-out"
    known = not found_out.exists()
    found_out.touch()
    return parts if known else health_unknown(parts)


def health_always_well(parts: Parts) -> Parts:
    """Broken devices are said to be well."""
    return replace(parts, initial_health=lambda _device: Health())


def health_told_once(parts: Parts) -> Parts:
    """How a device is when the driver starts is how it stays, whatever happens to it."""
    return replace(parts, health_store=_WrittenOnce)


class _WrittenOnce(HealthStore):
    def set(self, key: Key, health: Health) -> None:
        """Only what is not there yet."""
        if key not in self._health:
            super().set(key, health)


def health_without_words(parts: Parts) -> Parts:
    """Nobody learns why a device is not well."""
    return replace(parts, initial_health=lambda device: replace(parts.initial_health(device), message=""))


ALL = (
    health_unknown,
    health_unknown_after_a_restart,
    health_always_well,
    health_told_once,
    health_without_words,
)
