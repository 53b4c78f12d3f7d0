"""Crash points of prepare and unprepare, and the crashes that are armed at them while the driver runs.

After a crash at any of these points, a new process must recover. `control` arms crashes; mutants have their own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from fake_driver.errors import suggestion
from fake_driver.journal import Journal
from fake_driver.strict_decoding import Section

CRASH_POINTS = (
    "before-checkpoint", "after-checkpoint", "after-cdi",
    "before-cdi-removal", "after-cdi-removal", "after-checkpoint-removal",
)  # fmt: skip
_KILLED = 137  # the exit code of a process that got SIGKILL


class ArmedCrashes:
    """The crashes that are armed. Thread-safe."""

    def __init__(self, journal: Journal, exit_process: Callable[[int], Any] = os._exit) -> None:
        self._journal, self._exit_process = journal, exit_process
        self._lock = threading.Lock()
        self._points: list[str] = []

    @property
    def points(self) -> list[str]:
        """Return the points at which a crash is armed."""
        with self._lock:
            return list(self._points)

    def arm(self, point: str) -> None:
        """Crash when the driver reaches this point the next time."""
        with self._lock:
            self._points = sorted({*self._points, point})

    def clear(self) -> int:
        """Disarm all crashes and return how many there were."""
        with self._lock:
            count, self._points = len(self._points), []
        return count

    def reached(self, point: str) -> None:
        """End the process without any clean-up if a crash is armed at this point."""
        if point in self.points:
            self._journal.record("crash", point=point)
            self._exit_process(_KILLED)


def parse_point(request: Section) -> str:
    """Return the crash point in a request; add a problem if it is unknown."""
    point = request.get("point", str) or ""
    if point and point not in CRASH_POINTS:
        request.add_problem("point", f"is {point!r}; {suggestion(point, CRASH_POINTS)}")
    return point
