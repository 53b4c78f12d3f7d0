"""How long to wait before trying again: a moment at first, then longer and longer, until there was calm for a while."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable


class Backoff:
    """One thing that may go wrong again and again."""

    def __init__(
        self, first: float, longest: float, calm: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._first, self._longest, self._calm, self._clock = first, longest, calm, clock
        self._last, self._wait = -math.inf, first

    def next_delay(self) -> float:
        """Something went wrong; the seconds to wait now."""
        now = self._clock()
        is_new = now - self._last > self._calm + self._wait
        self._last, self._wait = now, self._first if is_new else min(self._wait * 2, self._longest)
        return self._wait * random.uniform(0.8, 1.0)  # noqa: S311 - it spreads load, it protects nothing
