"""The only module that sleeps. Callers name the condition, its timeout and the reason for it; a timeout reports the last observation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from testbed.errors import TestbedError, WaitTimeout

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_patience = 1.0


@dataclass(frozen=True)
class Budget:
    """A timeout and the reason for it. The patience factor scales all budgets, but none below its `minimum`."""

    name: str
    seconds: float
    why: str
    minimum: float = 0  # for events at a fixed interval, which a faster machine does not shorten

    @property
    def effective_seconds(self) -> float:
        """The timeout after scaling."""
        return max(self.seconds * _patience, self.minimum)

    def __str__(self) -> str:
        return f"{self.name}: {self.effective_seconds:g} s"


def unshortened(budget: Budget) -> Budget:
    """Return the budget for observing that something does not happen: a patience factor below 1 does not shorten it."""
    return replace(budget, minimum=max(budget.seconds, budget.minimum))


class NotYet(Exception):
    """Raised by a check whose condition is not met; its text is the observation."""


def set_patience(factor: float) -> None:
    """Set the patience factor, with which every budget is multiplied from now on."""
    global _patience  # noqa: PLW0603 - one value per process, set once from --patience
    _patience = factor


def pause(seconds: float) -> None:
    """Wait, where a test needs an instant and no state shows it."""
    time.sleep(seconds)


def eventually(
    check: Callable[[], T],
    waited_for: str,
    budget: Budget,
    *,
    hint: str = "",
    longest_pause: float = _LONGEST_PAUSE,
) -> T:
    """Call `check` until it returns instead of raising NotYet. Raise WaitTimeout with the last observation after the budget."""
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
    """Call `check` until it returns True. Return False after the budget."""

    def ask() -> bool:
        if not check():
            raise NotYet
        return True

    try:
        return eventually(ask, budget.name, budget, longest_pause=longest_pause)
    except WaitTimeout:
        return False


def holds_for(check: Callable[[], T], seconds: float) -> Callable[[], T]:
    """Return a check for `eventually` that succeeds when `check` has succeeded on every call for so many seconds."""
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
            raise NotYet(f"met, but not for {seconds:g} s yet" + (f"; before that: {before}" if before else ""))
        return answer

    return ask


def consistently(check: Callable[[], T], claim: str, budget: Budget) -> T:
    """Call `check` for the whole budget, which patience never shortens; return its last result. Raise an error if it raises NotYet."""
    budget = unshortened(budget)
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
