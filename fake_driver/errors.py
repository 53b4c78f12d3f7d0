"""The errors that the driver raises deliberately. Each message says what failed, on which object and, where possible, what to do.

DriverError
├── ConfigurationError    a setting, a hardware file or a control request is invalid; at start-up the process exits with 2
├── ClaimRefused          this claim cannot be prepared; its text appears in the pod's events
├── ApiError              the API server refused a request, or did not answer
└── DamagedFile           a file of the driver does not contain what the driver wrote
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DriverError(Exception):
    """The base of all errors that the driver raises deliberately."""


class ConfigurationError(DriverError):
    """A setting, a hardware file or a control request is invalid."""


class ClaimRefused(DriverError):
    """This claim cannot be prepared."""


class ApiError(DriverError):
    """The API server refused a request (`status` is the HTTP code), or did not answer (`status` is 0)."""

    def __init__(self, request: str, status: int, message: str) -> None:
        self.request, self.status, self.message = request, status, message
        super().__init__(f"{request}: {status}: {message}" if status else f"{request}: no answer: {message}")


class DamagedFile(DriverError):
    """A file of the driver does not contain what the driver wrote."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the known words that are similar to this one, or else all of them."""
    choices = sorted(known)
    similar = difflib.get_close_matches(word, choices, n=3)
    return f"did you mean {' or '.join(similar)}?" if similar else f"known: {', '.join(choices)}"
