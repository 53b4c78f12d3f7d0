"""The journal: a JSON line with a number and a time for each call, write, change and fault. Suites and people read it.

It is rotated, so that it stays small. The numbers increase by one with each line, also across restarts and when two processes of the driver
write at the same time during an update.
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
_MAX_LINE = 2**16


class Journal:
    """Appends events to a file in the driver's data folder, logs them, and passes them to `on_event`. A full disk never fails a call."""

    def __init__(
        self,
        path: Path,
        max_bytes: int = MAX_BYTES,
        on_event: Callable[[str, Mapping[str, object]], None] = lambda *_: None,
    ) -> None:
        self.path, self._max_bytes, self._on_event = path, max_bytes, on_event
        self._lock = threading.Lock()
        self._last = 0
        self._end: tuple[int, int] | None = None  # inode and size of the file after our last write

    def record(self, event: str, **facts: object) -> None:
        """Log an event and append it to the file."""
        log.info(event, extra={"facts": facts})
        self._on_event(event, facts)
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with self._lock:
            try:
                self._append({"time": time, "event": event, **facts})
            except OSError as full:
                log.warning("the journal %s cannot be written: %s", self.path, full)

    def entries_after(self, number: int, limit: int) -> list[dict[str, Any]]:
        """Return the first `limit` entries with a higher number, from the current file and the rotated one."""
        # The current file first: if it is rotated between the two reads, its entries are read twice instead of not at all.
        entries = {entry["seq"]: entry for path in (self.path, self._rotated) for entry in _entries(path)}
        return [entries[seq] for seq in sorted(entries) if seq > number][:limit]

    @property
    def last_number(self) -> int:
        """The number of the newest entry; 0 if there is none."""
        return _newest(self.path) or _newest(self._rotated)

    @property
    def _rotated(self) -> Path:
        return self.path.with_suffix(".old.jsonl")

    def _append(self, entry: dict[str, object]) -> None:
        with self._locked_file() as file:
            size = file.tell()
            if self._end != (os.fstat(file.fileno()).st_ino, size):
                self._last = self.last_number  # another process has written since, or this is our first write
            self._last += 1
            file.write(_line({"seq": self._last, **entry}))
            file.flush()
            self._end = (os.fstat(file.fileno()).st_ino, file.tell())
            if file.tell() > self._max_bytes:
                self.path.replace(self._rotated)

    @contextlib.contextmanager
    def _locked_file(self) -> Iterator[IO[bytes]]:
        """Open and lock the file for each write, because another process of this driver may rotate it, even while we wait for the lock."""
        while True:
            with self.path.open("ab") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if _is_at(self.path, file):
                    yield file
                    return


def _line(entry: dict[str, Any]) -> bytes:
    """Return an entry as a line; one that is too long is replaced by its length."""
    line = json.dumps(entry).encode()
    if len(line) >= _MAX_LINE:
        kept = {key: entry[key] for key in ("seq", "time", "event")}
        line = json.dumps({**kept, "too_long": len(line)}).encode()
    return line + b"\n"


def _is_at(path: Path, file: IO[bytes]) -> bool:
    try:
        return path.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False


def _newest(path: Path) -> int:
    """Return the number in the last line of a file; 0 if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _MAX_LINE))
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
    """Yield the entries in some lines, without truncated lines and lines of older versions, which had no numbers."""
    for line in content.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("seq"), int):
            yield entry
