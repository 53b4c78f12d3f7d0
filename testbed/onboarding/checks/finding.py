"""What a check of a driver file found, and who has to act. Pure data for the CLI, `driver init` and the start of a run."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.errors import DriverFailed, Incomplete, TestbedError, UsageError
from testbed.folders import shown
from testbed.models import document
from testbed.models.document import Document, Location


class Blame(enum.StrEnum):
    """Who has to act. FILE ends a command with 2, DRIVER with 1, ENVIRONMENT with 3, and UNTRIED with 4. A NOTE costs nothing."""

    FILE = "file"
    DRIVER = "driver"
    ENVIRONMENT = "environment"
    UNTRIED = "untried"
    NOTE = "note"


_ERRORS: dict[Blame, tuple[type[TestbedError], str]] = {
    Blame.FILE: (UsageError, "has mistakes: {} above"),
    Blame.DRIVER: (DriverFailed, "can be used, but the driver fails a requirement: {} above"),
    Blame.ENVIRONMENT: (TestbedError, "could not be checked, because of the cluster: {} above"),
    Blame.UNTRIED: (Incomplete, "could not be checked completely: {} above"),
}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing. `key` is that of the driver file, with its line there; '' and 0 if it is about none.

    `requirement` is the ID of the requirement that the driver fails by it.
    """

    blame: Blame
    what: str
    key: str = ""
    line: int = 0
    requirement: str = ""

    def describe(self, path: Path) -> str:
        """Return the finding in one line, with the place in the driver file or the failed requirement."""
        place = f"{shown(path)}:{self.line}" if self.line else shown(path)
        return ": ".join(filter(None, [self.requirement or place, self.key, self.what]))


def with_lines(findings: Iterable[Finding], path: Path) -> list[Finding]:
    """Return the findings with the lines of their keys in the driver file, in the order of the lines."""
    source = document.read(path)
    located = [replace(each, line=_line(source, each.key)) if each.key and not each.line else each for each in findings]
    return sorted(located, key=lambda each: each.line)


def error_of(findings: Iterable[Finding], path: Path) -> TestbedError | None:
    """Return an error for the gravest of the findings, which were printed; None if they cost nothing."""
    blames = [each.blame for each in findings]
    gravest = next((each for each in _ERRORS if each in blames), None)
    if gravest is None:
        return None
    kind, text = _ERRORS[gravest]
    return kind(f"driver file {shown(path)} {text.format(blames.count(gravest))}")


def _line(source: Document, key: str) -> int:
    """Return the line of a key, 0 if neither it nor a parent apart from spec is in the file."""
    location: Location = ()
    for part in key.replace("[", ".[").split("."):
        location = (*location, int(part[1:-1]) if part.startswith("[") else part)
    return source.line(location)
