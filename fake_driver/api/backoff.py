"""Exponential back-off with jitter for everything that the driver retries."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable


class Backoff:
    """The delays of one operation. They double with each failure, and start again after `reset_after` seconds without one."""

    def __init__(
        self, initial: float, maximum: float, reset_after: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._initial, self._maximum, self._reset_after, self._clock = initial, maximum, reset_after, clock
        self._last_failure, self._delay = -math.inf, initial

    def next_delay(self) -> float:
        """Record a failure and return the seconds to wait before the next attempt."""
        now = self._clock()
        is_first = now - self._last_failure > self._reset_after + self._delay
        self._last_failure, self._delay = now, self._initial if is_first else min(self._delay * 2, self._maximum)
        return self._delay * random.uniform(0.8, 1.0)  # noqa: S311 - jitter needs no cryptographic randomness
