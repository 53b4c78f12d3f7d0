"""The health of devices: `HealthStore` keeps it, and its readers can wait for changes. Used by the health stream and live hardware."""

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
    """How a device is, and why, for people."""

    status: str = HEALTHY
    message: str = ""


def initial_health(device: Device) -> Health:
    """How a device is when the driver starts: well, unless its attribute `healthy` is false."""
    return Health(UNHEALTHY, "the hardware file says so") if device.attributes.get("healthy") is False else Health()


class HealthStore:
    """The health of all devices. Thread-safe; readers can wait for news."""

    def __init__(self, health: Mapping[Key, Health]) -> None:
        self._news = threading.Condition()
        self._health = dict(health)
        self._version = 1
        self._closed = False

    def set(self, key: Key, health: Health) -> None:
        """A device is well, or is not, from now on."""
        with self._news:
            self._health[key] = health
            self._changed()

    def remove(self, key: Key) -> None:
        """A device is gone."""
        with self._news:
            self._health.pop(key, None)
            self._changed()

    def count_by_status(self) -> Counter[str]:
        """How many devices are how."""
        with self._news:
            return Counter(each.status for each in self._health.values())

    def wake_readers(self) -> None:
        """Wake whoever waits, so that it looks whether it is still wanted."""
        with self._news:
            self._changed()

    def close(self) -> None:
        """End all waiting."""
        with self._news:
            self._closed = True
            self._news.notify_all()

    def wait_for_change(self, seen: int, seconds: float) -> tuple[int, dict[Key, Health]] | None:
        """The newest version and all of it, when that is not `seen`, or else after some seconds; None at the end."""
        with self._news:
            self._news.wait_for(lambda: self._closed or self._version != seen, seconds)
            return None if self._closed else (self._version, dict(self._health))

    def _changed(self) -> None:
        self._version += 1
        self._news.notify_all()
