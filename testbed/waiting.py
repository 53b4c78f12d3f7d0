"""The only place that sleeps. Whoever waits says for what, how long at most and why so long, and learns what was seen last."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from testbed.errors import TestbedError, WaitTimeout

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_patience = 1.0


@dataclass(frozen=True)
class Budget:
    """How long a wait may take, and the reason for it. `--patience` stretches all budgets alike, and shortens none below its `least`."""

    name: str
    seconds: float
    why: str
    minimum: float = 0  # for what comes at an interval of its own, however quick the machine

    @property
    def effective_seconds(self) -> float:
        """The seconds that are really waited."""
        return max(self.seconds * _patience, self.minimum)

    def __str__(self) -> str:
        return f"{self.name}: {self.effective_seconds:g} s"


class NotYet(Exception):
    """Raised by a check while the state has not come; its text is what was seen."""


def set_patience(factor: float) -> None:
    """Stretch every budget from now on, for slow machines."""
    global _patience  # noqa: PLW0603 - one value per process, set once from --patience
    _patience = factor


def eventually(
    check: Callable[[], T],
    waited_for: str,
    budget: Budget,
    *,
    hint: str = "",
    longest_pause: float = _LONGEST_PAUSE,
) -> T:
    """Call `check` until it returns instead of raising NotYet; after the budget, WaitTimeout with what was seen last."""
    deadline = time.monotonic() + budget.effective_seconds
    pause = min(_FIRST_PAUSE, longest_pause)
    while True:
        try:
            return check()
        except NotYet as answer:
            seen, cause = str(answer) or "nothing yet", answer
        left = deadline - time.monotonic()
        if left <= 0:
            raise WaitTimeout(waited_for, str(budget), seen, hint=hint) from cause
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, longest_pause)


def eventually_true(check: Callable[[], bool], budget: Budget, *, longest_pause: float = _LONGEST_PAUSE) -> bool:
    """Like eventually, for a plain yes-or-no check; False when the budget ran out."""

    def ask() -> bool:
        if not check():
            raise NotYet
        return True

    try:
        return eventually(ask, budget.name, budget, longest_pause=longest_pause)
    except WaitTimeout:
        return False


def holds_for(check: Callable[[], T], seconds: float) -> Callable[[], T]:
    """The check, for `eventually`, with a memory: what it looks for must have been so at every look for that long."""
    since: list[float] = []
    before = ""

    def ask() -> T:
        nonlocal before
        try:
            answer = check()
        except NotYet as not_so:
            since.clear()
            before = str(not_so)
            raise
        since.append(time.monotonic())
        if since[-1] - since[0] < seconds:
            raise NotYet(f"it has come, but not for {seconds:g} s yet" + (f"; before that: {before}" if before else ""))
        return answer

    return ask


def consistently(check: Callable[[], T], claim: str, budget: Budget) -> T:
    """Call `check` for the whole budget and demand that it never raises NotYet; returns the last answer."""
    deadline = time.monotonic() + budget.effective_seconds
    while True:
        try:
            answer = check()
        except NotYet as broken:
            raise TestbedError(f"expected {claim} for {budget}, but saw: {broken}") from broken
        left = deadline - time.monotonic()
        if left <= 0:
            return answer
        time.sleep(min(0.2, left))
