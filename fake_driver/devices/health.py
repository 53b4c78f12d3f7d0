"""The health of devices: live hardware stores it, the health service waits for changes of it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from fake_driver.devices.model import Device

HEALTHY, UNHEALTHY, UNKNOWN = "HEALTHY", "UNHEALTHY", "UNKNOWN"
Key = tuple[str, str]  # pool and device


@dataclass(frozen=True)
class Health:
    """The health of a device, with a message for people."""

    status: str = HEALTHY
    message: str = ""


def initial_health(device: Device) -> Health:
    """Return the health of a device when the driver starts: healthy, unless its attribute `healthy` is false."""
    return Health(UNHEALTHY, "the hardware file says so") if device.attributes.get("healthy") is False else Health()


class HealthStore:
    """The health of all devices. Thread-safe; readers can wait for changes."""

    def __init__(self, health: Mapping[Key, Health]) -> None:
        self._condition = threading.Condition()
        self._health = dict(health)
        self._version = 1
        self._closed = False

    def set(self, key: Key, health: Health) -> None:
        """Set the health of a device."""
        with self._condition:
            self._health[key] = health
            self._changed()

    def remove(self, key: Key) -> None:
        """Remove a device."""
        with self._condition:
            self._health.pop(key, None)
            self._changed()

    def count_by_status(self) -> Counter[str]:
        """Return the number of devices with each status."""
        with self._condition:
            return Counter(each.status for each in self._health.values())

    def wake_readers(self) -> None:
        """Wake the waiting readers although nothing has changed."""
        with self._condition:
            self._changed()

    def close(self) -> None:
        """End all waiting and all later reads."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def wait_for_change(self, seen: int, seconds: float) -> tuple[int, dict[Key, Health]] | None:
        """Return the current version and the health of all devices as soon as the version differs from `seen`, or after some seconds.

        Return None after `close()`.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._closed or self._version != seen, seconds)
            return None if self._closed else (self._version, dict(self._health))

    def _changed(self) -> None:
        self._version += 1
        self._condition.notify_all()
