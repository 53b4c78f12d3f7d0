"""Every error that this project raises on purpose, and the exit code that each one means.

    TestbedError                 3  the harness or the environment failed
    ├── UsageError               2  a flag, a file or a name is wrong; nothing was touched, or it was undone
    ├── CommandFailed            3  a program that we started ended badly
    ├── WaitTimeout              3  a state did not come within its budget
    │   └── NodesUnderPressure           3  … because nodes are short of something, as they will be for whatever comes next
    ├── ApiError                 3  the API server refused, or was not there
    ├── DriverFailed             1  the driver under test broke its contract
    ├── Blocked                  4  what it builds on was not there, so it could not begin
    ├── NothingToJudge           4  what it asks about is nowhere; of a requirement that is not-applicable, which costs nothing
    └── Incomplete               4  something that had to run did not

Blame is decided by type alone: only DriverFailed speaks about the driver. Each error says what failed, what was last seen and
what to try; the cause is always chained.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Sequence

FREE_DISK_SPACE = "make room, or move DRA_TESTBED_CACHE and DRA_TESTBED_STATE"


class TestbedError(Exception):
    """The harness or the environment failed; the base of all our errors."""

    __test__ = False  # pytest would take the name for a test class
    exit_code = 3

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what}\n  try: {self.hint}" if self.hint else self.what


class UsageError(TestbedError):
    """A flag, a file or a name that the user gave is wrong. Nothing was touched, or what was made has been undone."""

    exit_code = 2


class CommandFailed(TestbedError):
    """A program that we started ended badly; shows a line that can be pasted into a shell."""

    def __init__(self, argv: Sequence[str], status: str, output: str, *, hint: str = "") -> None:
        self.argv, self.status, self.output = tuple(argv), status, output
        hint = FREE_DISK_SPACE if self.disk_full else hint
        lines = [line for line in output.strip().splitlines() if 'level=warning msg="DEPRECATION' not in line]
        shown = "\n".join(f"    {line}" for line in lines[-20:]) or "    (no output)"
        super().__init__(f"command failed ({status}): {shlex.join(argv)}\n{shown}", hint=hint)

    @property
    def disk_full(self) -> bool:
        """Whether it had no room to write; C programs and Go programs do not write it alike."""
        return "no space left on device" in self.output.lower()


class WaitTimeout(TestbedError):
    """A state did not come within its budget; says what was seen last."""

    def __init__(self, waited_for: str, budget: str, last_seen: str, *, hint: str = "") -> None:
        self.waited_for, self.budget, self.last_seen = waited_for, budget, last_seen
        super().__init__(f"timed out waiting for {waited_for} ({budget})\n  last seen: {last_seen}", hint=hint)


class NodesUnderPressure(WaitTimeout):
    """A state did not come because nodes are short of something; nor will others."""


class ApiError(TestbedError):
    """The API server refused a request, or did not answer it."""

    def __init__(self, request: str, status: int, reason: str, message: str) -> None:
        self.request, self.status, self.reason, self.message = request, status, reason, message
        super().__init__(f"{request}: {status} {reason}: {message}" if status else f"{request}: {message}")

    @property
    def overloaded(self) -> bool:
        """Whether the server only had too much to do: the same request may well be answered in a moment."""
        return self.status in (429, 500, 503, 504)


class DriverFailed(TestbedError):
    """The driver under test broke its contract."""

    exit_code = 1


class Blocked(TestbedError):
    """What something builds on was not there, so it could not begin."""

    exit_code = 4


class NothingToJudge(TestbedError):
    """What a requirement is about is nowhere in what the driver offers, and need not be. Nobody has failed."""

    exit_code = 4


class Incomplete(TestbedError):
    """Something that had to run did not."""

    exit_code = 4


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint with the nearest known words, or with all of them when they are few; '' when there is nothing to say."""
    choices = sorted(known)
    near = difflib.get_close_matches(word, choices, n=3, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(near) + "?"
    return "known: " + ", ".join(choices) if 0 < len(choices) <= 12 else ""
