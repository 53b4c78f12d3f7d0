"""Every error that the driver raises on purpose; each says what failed, on what, and where it can, what to try.

DriverError
├── ConfigurationError    a setting or the hardware file is wrong; the process ends with 2
├── ClaimRefused          this claim cannot be prepared; its text reaches the pod's events
├── ApiError              the API server refused, or did not answer
└── Damaged               a file of our own does not say what we once wrote
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DriverError(Exception):
    """The base of all errors that the driver raises on purpose."""


class ConfigurationError(DriverError):
    """A setting or the hardware file is wrong."""


class ClaimRefused(DriverError):
    """This claim cannot be prepared."""


class ApiError(DriverError):
    """The API server refused a request (status), or gave no answer (status 0)."""

    def __init__(self, request: str, status: int, message: str) -> None:
        self.request, self.status, self.message = request, status, message
        super().__init__(f"{request}: {status}: {message}" if status else f"{request}: no answer: {message}")


class DamagedFile(DriverError):
    """A file of our own does not say what we once wrote."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """The known words that look like this one, or all of them, as the end of an error message."""
    choices = sorted(known)
    similar = difflib.get_close_matches(word, choices, n=3)
    return f"did you mean {' or '.join(similar)}?" if similar else f"known: {', '.join(choices)}"
