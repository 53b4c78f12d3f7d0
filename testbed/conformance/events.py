"""events.jsonl: what happened in a run, written as it happens. Everything else in the report folder is made from it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import UsageError
from testbed.redaction import redactor

FILE = "events.jsonl"
RUN_STARTED = "run-started"
TESTBED_WANTED, TESTBED_FAILED = "testbed-wanted", "testbed-failed"  # before the suites, which begin a new log
RUN_ENDS = ("run-finished", "run-stopped")  # pytest ended: all tests ran, or it was stopped and has cleaned up
_FIRST = f'{{"event": "{RUN_STARTED}"'  # the first line of every log begins with it, even if a kill truncated the line
Event = dict[str, Any]


@dataclass(frozen=True)
class EventLog:
    """Appends events to the log of one run. Each line is written before anything else happens."""

    folder: Path

    def write(self, event: str, **facts: object) -> None:
        """Append one event, without credentials: reports are made from events and published."""
        known = redactor.redact_strings(facts)
        line = json.dumps({"event": event, "time": round(time.time(), 3), **known}, ensure_ascii=False)
        # A driver's message may contain what is not valid text.
        with (self.folder / FILE).open("a", encoding="utf-8", errors="replace") as file:
            file.write(line + "\n")


def read(folder: Path) -> list[Event]:
    """Return the events of a run. The last line is ignored if a kill truncated it. UsageError if there is no valid log."""
    try:
        lines = (folder / FILE).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as missing:
        raise UsageError(f"{folder} is not a report folder: {missing.strerror}") from missing
    events = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            events.append(json.loads(line))
        except ValueError as broken:
            raise UsageError(f"{folder / FILE}:{number} is damaged: {broken}") from broken
    return events


def suites_began(log: Sequence[Event]) -> bool:
    """Return True if the suites have begun. Otherwise the run had no testbed, or is waiting for it."""
    return bool(log) and not any(each["event"] == TESTBED_WANTED for each in log)


def begins_with_event(folder: Path) -> bool:
    """Return True if the folder has the log of a run."""
    try:
        with (folder / FILE).open("rb") as content:
            return content.read(len(_FIRST)) == _FIRST.encode()
    except OSError:
        return False
