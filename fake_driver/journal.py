"""The journal: one JSON line for each call, write and fault, with its time, for suites and for people. Kept small by one rotation."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

log = logging.getLogger(__name__)
LARGEST = 4 * 2**20


class Journal:
    """Appends to a file in the plugin's data folder, and says the same in the log and to `heard`. A full disk never fails a call."""

    def __init__(
        self, path: Path, largest: int = LARGEST, heard: Callable[[str, Mapping[str, object]], None] = lambda *_: None
    ) -> None:
        self.path, self._largest, self._heard = path, largest, heard
        self._lock = threading.Lock()

    def note(self, event: str, **facts: object) -> None:
        """Write down what happened."""
        log.info(event, extra={"facts": facts})
        self._heard(event, facts)
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = json.dumps({"time": time, "event": event, **facts}) + "\n"
        with self._lock:
            try:
                self._append(line)
            except OSError as full:
                log.warning("the journal %s cannot be written: %s", self.path, full)

    def _append(self, line: str) -> None:
        # Opened each time: a second process of this driver may have rotated it.
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line)
            size = file.tell()
        if size > self._largest:
            self.path.replace(self.path.with_suffix(".old.jsonl"))
