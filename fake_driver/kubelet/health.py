"""How the devices are, and the stream that tells the kubelet. Whoever learns of trouble writes it on the board; the streams read it.

The kubelet shows it in the status of containers that have the device. It forgets what it is not told again within half a minute.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import grpc

from fake_driver.devices.model import Device
from fake_driver.journal import Journal

log = logging.getLogger(__name__)
HEALTHY, UNHEALTHY, UNKNOWN = "HEALTHY", "UNHEALTHY", "UNKNOWN"
_TIMEOUT, _REPEAT = 30, 10.0  # seconds: what the kubelet is told to be patient for, and how often it hears from us
MOST_STREAMS = 4  # each holds a thread that could prepare a claim; a kubelet has one
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

    def write(self, key: Key, health: Health) -> None:
        """A device is well, or is not, from now on."""
        with self._news:
            self._health[key] = health
            self._tell()

    def remove(self, key: Key) -> None:
        """A device is gone."""
        with self._news:
            self._health.pop(key, None)
            self._tell()

    def counts(self) -> Counter[str]:
        """How many devices are how."""
        with self._news:
            return Counter(each.status for each in self._health.values())

    def tell(self) -> None:
        """Wake whoever waits, so that it looks whether it is still wanted."""
        with self._news:
            self._tell()

    def close(self) -> None:
        """End all waiting."""
        with self._news:
            self._closed = True
            self._news.notify_all()

    def read(self, seen: int, seconds: float) -> tuple[int, dict[Key, Health]] | None:
        """The newest version and all of it, when that is not `seen`, or else after some seconds; None at the end."""
        with self._news:
            self._news.wait_for(lambda: self._closed or self._version != seen, seconds)
            return None if self._closed else (self._version, dict(self._health))

    def _tell(self) -> None:
        self._version += 1
        self._news.notify_all()


class HealthService:
    """The stream of one API version; `messages` is the module of its messages."""

    def __init__(
        self, board: HealthStore, messages: ModuleType, journal: Journal, clock: Callable[[], float] = time.time
    ) -> None:
        self._board, self._messages, self._journal, self._clock = board, messages, journal, clock
        self._streams = threading.BoundedSemaphore(MOST_STREAMS)

    def NodeWatchResources(self, _request: Any, context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: N802 - as on the wire
        """All devices, at once and whenever one of them changes, and often enough to be believed."""
        if not self._streams.acquire(blocking=False):
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MOST_STREAMS} callers watch the health already")
        # A caller that went away is noticed when there is news, so its end is news.
        with contextlib.ExitStack() as ends:
            ends.callback(self._streams.release)
            if not context.add_callback(self._board.tell):
                return
            version, api = 0, self._messages.DESCRIPTOR.package
            self._journal.note("health-watch", version=api, began=True)
            ends.callback(self._journal.note, "health-watch", version=api, began=False)
            while context.is_active() and (found := self._board.read(version, _REPEAT)):
                version = found[0]
                if context.is_active():
                    yield self._response(found[1])

    def _response(self, health: Mapping[Key, Health]) -> Any:
        now = int(self._clock())
        devices = (self._device(key, one, now) for key, one in health.items())
        return self._messages.NodeWatchResourcesResponse(devices=devices)

    def _device(self, key: Key, health: Health, now: int) -> Any:
        identity = self._messages.DeviceIdentifier(pool_name=key[0], device_name=key[1])
        return self._messages.DeviceHealth(
            device=identity,
            health=self._messages.HealthStatus.Value(health.status),
            last_updated_time=now,
            health_check_timeout_seconds=_TIMEOUT,
            message=health.message,
        )
