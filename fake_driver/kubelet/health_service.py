"""The gRPC stream that reports the health of devices to the kubelet.

The kubelet shows it in the status of containers that use the device, and forgets what is not repeated within 30 seconds.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import grpc

from fake_driver.devices.health import Health, HealthStore, Key
from fake_driver.journal import Journal

_TIMEOUT, _REPEAT = 30, 10.0  # seconds: how long the kubelet believes a report, and how often we repeat it
MAX_STREAMS = 4  # each holds a thread that could prepare a claim; a kubelet has one


class HealthService:
    """The servicer of one API version, whose messages are in the module `messages`."""

    def __init__(
        self, health_store: HealthStore, messages: ModuleType, journal: Journal, clock: Callable[[], float] = time.time
    ) -> None:
        self._health_store, self._messages, self._journal, self._clock = health_store, messages, journal, clock
        self._streams = threading.BoundedSemaphore(MAX_STREAMS)

    def NodeWatchResources(self, _request: Any, context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: N802 - as on the wire
        """Yield the health of all devices: immediately, after each change, and again before the kubelet considers it stale."""
        if not self._streams.acquire(blocking=False):
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MAX_STREAMS} health streams are open already")
        with contextlib.ExitStack() as at_end:
            at_end.callback(self._streams.release)
            # A waiting stream must notice that its caller has gone.
            if not context.add_callback(self._health_store.wake_readers):
                return
            version, api = 0, self._messages.DESCRIPTOR.package
            self._journal.record("health-watch", version=api, began=True)
            at_end.callback(self._journal.record, "health-watch", version=api, began=False)
            while context.is_active() and (change := self._health_store.wait_for_change(version, _REPEAT)):
                version, health = change
                if context.is_active():
                    yield self._response(health)

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
