"""The journal: one JSON line for each call, write, change and fault, with number and time, for suites and people. Kept small by rotation.

Numbers rise by one with each line, over restarts too, and also where two processes of a driver write during an update.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

log = logging.getLogger(__name__)
MAX_BYTES = 4 * 2**20
_LONGEST_LINE = 2**16


class Journal:
    """Appends to a file in the plugin's data folder, and says the same in the log and to `on_event`. A full disk never fails a call."""

    def __init__(
        self,
        path: Path,
        largest: int = MAX_BYTES,
        on_event: Callable[[str, Mapping[str, object]], None] = lambda *_: None,
    ) -> None:
        self.path, self._largest, self._on_event = path, largest, on_event
        self._lock = threading.Lock()
        self._last = 0
        self._left: tuple[int, int] | None = None  # the file and its size when we wrote last

    def record(self, event: str, **facts: object) -> None:
        """Write down what happened."""
        log.info(event, extra={"facts": facts})
        self._on_event(event, facts)
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with self._lock:
            try:
                self._append({"time": time, "event": event, **facts})
            except OSError as full:
                log.warning("the journal %s cannot be written: %s", self.path, full)

    def entries_after(self, number: int, limit: int) -> list[dict[str, Any]]:
        """The first `most` entries after the one with that number. What is older than both files is forgotten."""
        # The present file first: where it becomes the old one in between, its entries are read twice, and not never.
        entries = {entry["seq"]: entry for path in (self.path, self._old) for entry in _entries(path)}
        return [entries[seq] for seq in sorted(entries) if seq > number][:limit]

    @property
    def last_number(self) -> int:
        """The number of the newest entry; 0 when there is none."""
        return _newest(self.path) or _newest(self._old)

    @property
    def _old(self) -> Path:
        return self.path.with_suffix(".old.jsonl")

    def _append(self, entry: dict[str, object]) -> None:
        with self._opened() as file:
            size = file.tell()
            if self._left != (os.fstat(file.fileno()).st_ino, size):
                self._last = self.last_number  # another process wrote, or none yet
            self._last += 1
            file.write(_line({"seq": self._last, **entry}))
            file.flush()
            self._left = (os.fstat(file.fileno()).st_ino, file.tell())
            if file.tell() > self._largest:
                self.path.replace(self._old)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        """The file, for us alone. Opened each time: a second process of this driver may have rotated it, even while we waited."""
        while True:
            with self.path.open("ab") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if _is_at(self.path, file):
                    yield file
                    return


def _line(entry: dict[str, Any]) -> bytes:
    """An entry as a line that is not too long."""
    line = json.dumps(entry).encode()
    if len(line) >= _LONGEST_LINE:
        kept = {key: entry[key] for key in ("seq", "time", "event")}
        line = json.dumps({**kept, "too_long": len(line)}).encode()
    return line + b"\n"


def _is_at(path: Path, file: IO[bytes]) -> bool:
    try:
        return path.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False


def _newest(path: Path) -> int:
    """The number in the last line of a file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST_LINE))
            tail = file.read()
    except FileNotFoundError:
        return 0
    return max((entry["seq"] for entry in _parsed(tail)), default=0)


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    try:
        yield from _parsed(path.read_bytes())
    except FileNotFoundError:
        return


def _parsed(content: bytes) -> Iterator[dict[str, Any]]:
    """The entries in some lines; what is cut off, or came from an older version without numbers, is left out."""
    for line in content.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("seq"), int):
            yield entry
