"""events.jsonl: what happened in a run, written as it happens. Everything else in the report folder is made from it."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import UsageError

FILE = "events.jsonl"
_MADE_FROM_EVENTS = ("report.yaml", "junit.xml", FILE)
Event = dict[str, Any]


@dataclass(frozen=True)
class EventLog:
    """Appends events to the file of one run; each line is on its way to the disk before anything else happens."""

    folder: Path

    def begin(self) -> None:
        """Start a new run in the folder."""
        discard(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / FILE).write_text("")

    def write(self, event: str, **facts: object) -> None:
        """Append one event."""
        line = json.dumps({"event": event, "time": round(time.time(), 3), **facts}, ensure_ascii=False)
        with (self.folder / FILE).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def discard(folder: Path) -> None:
    """Remove what an earlier run left in a report folder. A folder that is not one is left alone."""
    if (folder / FILE).is_file():
        shutil.rmtree(folder / "evidence", ignore_errors=True)
        for name in _MADE_FROM_EVENTS:
            (folder / name).unlink(missing_ok=True)


def read(folder: Path) -> list[Event]:
    """The events of a run. The last line may be half written when the run was killed; such a line did not happen."""
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
