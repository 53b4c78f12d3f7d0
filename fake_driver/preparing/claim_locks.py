"""One lock per claim: calls for the same claim run one after the other, calls for different claims run concurrently."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class ClaimLocks:
    """Locks by UID. A lock exists only while a thread holds it or waits for it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    @contextlib.contextmanager
    def hold(self, uid: str) -> Iterator[None]:
        """Wait for the claim's lock and hold it inside the with statement."""
        lock = self._join(uid)
        try:
            with lock:
                yield
        finally:
            self._leave(uid)

    def _join(self, uid: str) -> threading.Lock:
        with self._guard:
            lock, users = self._locks.get(uid) or (threading.Lock(), 0)
            self._locks[uid] = (lock, users + 1)
            return lock

    def _leave(self, uid: str) -> None:
        with self._guard:
            lock, users = self._locks.pop(uid)
            if users > 1:
                self._locks[uid] = (lock, users - 1)
