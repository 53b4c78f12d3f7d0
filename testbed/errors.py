"""All errors that this project raises on purpose, with their exit codes.

    TestbedError                 3  the harness or the environment failed
    ├── UsageError               2  a flag, a file or a name is wrong; nothing was changed, or the changes were undone
    ├── CommandFailed            3  a program was not found, exited non-zero or timed out
    ├── WaitTimeout              3  a condition was not met within its timeout
    │   └── NodesUnderPressure   3  … because nodes lack resources, which later waits will lack too
    ├── ApiError                 3  the API server refused a request, or did not answer
    ├── DriverFailed             1  the driver under test violated its contract
    ├── Blocked                  4  a precondition was not met, so the test could not begin
    ├── NothingToJudge           4  the driver offers nothing that the requirement applies to: not-applicable, which costs nothing
    └── Incomplete               4  something that had to run did not run

The type alone decides who is blamed: only DriverFailed blames the driver. Each error says what failed, what was last seen and
what to try; its cause is always chained.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Sequence

FREE_DISK_SPACE = "free disk space, or move DRA_TESTBED_CACHE and DRA_TESTBED_STATE"


class TestbedError(Exception):
    """The harness or the environment failed. Base class of all errors of this project."""

    __test__ = False  # pytest would collect a class of this name
    exit_code = 3

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what}\n  try: {self.hint}" if self.hint else self.what


class UsageError(TestbedError):
    """A flag, a file or a name of the user is wrong. Nothing was changed, or the changes were undone."""

    exit_code = 2


class CommandFailed(TestbedError):
    """A program was not found, exited non-zero or timed out. The message has a command line that can be pasted into a shell."""

    def __init__(self, argv: Sequence[str], status: str, output: str, *, hint: str = "") -> None:
        self.argv, self.status, self.output = tuple(argv), status, output
        hint = FREE_DISK_SPACE if self.disk_full else hint
        lines = [line for line in output.strip().splitlines() if 'level=warning msg="DEPRECATION' not in line]
        shown = "\n".join(f"    {line}" for line in lines[-20:]) or "    (no output)"
        super().__init__(f"command failed ({status}): {shlex.join(argv)}\n{shown}", hint=hint)

    @property
    def disk_full(self) -> bool:
        """Return True if the disk was full. C and Go programs capitalize that error differently."""
        return "no space left on device" in self.output.lower()


class WaitTimeout(TestbedError):
    """A condition was not met within its timeout. The message has the last observation."""

    def __init__(self, waited_for: str, budget: str, last_seen: str, *, cause: str = "", hint: str = "") -> None:
        self.waited_for, self.budget, self.last_seen, self.cause = waited_for, budget, last_seen, cause
        likely = f"\n  likely cause: {cause}" if cause else ""
        super().__init__(f"timed out waiting for {waited_for} ({budget}){likely}\n  last seen: {last_seen}", hint=hint)


class NodesUnderPressure(WaitTimeout):
    """A condition was not met because nodes lack resources, which later waits will lack too."""


class ApiError(TestbedError):
    """The API server refused a request, or did not answer."""

    def __init__(self, request: str, status: int, reason: str, message: str) -> None:
        self.request, self.status, self.reason, self.message = request, status, reason, message
        super().__init__(f"{request}: {status} {reason}: {message}" if status else f"{request}: {message}")

    @property
    def overloaded(self) -> bool:
        """Return True if the server was overloaded or unavailable, so that a retry may succeed."""
        return self.status in (429, 500, 503, 504)


class DriverFailed(TestbedError):
    """The driver under test violated its contract.

    `by_driver` is False if a component of the cluster may have caused it too: a state that was not observed in time.
    """

    exit_code = 1
    by_driver = True


class Blocked(TestbedError):
    """A precondition was not met, so the test could not begin."""

    exit_code = 4


class NothingToJudge(TestbedError):
    """The driver offers nothing that the requirement applies to, and need not. This is no failure."""

    exit_code = 4


class Incomplete(TestbedError):
    """Something that had to run did not run."""

    exit_code = 4


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint with the closest known words, or with all of them if they are few; otherwise ''."""
    choices = sorted(known)
    near = difflib.get_close_matches(word, choices, n=3, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(near) + "?"
    return "known: " + ", ".join(choices) if 0 < len(choices) <= 12 else ""
