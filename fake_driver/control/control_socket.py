"""The socket through which a running driver is changed: one JSON line in, one JSON line out, then it is closed. `wiring` starts it.

It is in the driver's own data folder and root's alone, so whoever may run a program in the driver's pod may use it, and nobody else.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)
LONGEST_REQUEST = 2**16
_PATIENCE = 5.0  # seconds that a caller may take to say what he wants, or to hear the answer


class ControlSocket:
    """Answers one caller after the other, in a thread of its own."""

    def __init__(self, path: Path, answer: Callable[[object], dict[str, Any]]) -> None:
        self.path, self._answer = path, answer
        self._listener: socket.socket | None = None
        self._inode = 0
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)

    def start(self) -> None:
        """Listen. It has its name only when it answers and nobody else may use it."""
        hidden = self.path.with_name(f".{secrets.token_hex(4)}")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(hidden))
        hidden.chmod(0o600)
        self._inode = hidden.stat().st_ino
        self._listener.listen()
        hidden.rename(self.path)
        self._thread.start()

    def stop(self) -> None:
        """End; the file goes, if it is still ours."""
        if self._listener is None:
            return
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join(_PATIENCE)
        self._listener.close()
        with contextlib.suppress(FileNotFoundError):
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()

    def _run(self) -> None:
        while self._listener:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            try:
                with caller:
                    caller.settimeout(_PATIENCE)
                    self._serve(caller)
            except OSError as lost:
                log.info("somebody who wanted to change the hardware went away: %s", lost)

    def _serve(self, caller: socket.socket) -> None:
        answer = self._answered(_line(caller))
        caller.sendall(json.dumps(answer).encode() + b"\n")

    def _answered(self, line: bytes) -> dict[str, Any]:
        if len(line) > LONGEST_REQUEST:
            return _refusal(f"is longer than {LONGEST_REQUEST} bytes")
        try:
            request = json.loads(line)
        except (ValueError, RecursionError) as broken:
            return _refusal(f"is not JSON: {broken}")
        return self._answer(request)


def _refusal(why: str) -> dict[str, Any]:
    return {"ok": False, "error": f"nothing was changed: the request {why}"}


def _line(caller: socket.socket) -> bytes:
    """What a caller says up to the end of the line, or one byte more than he may."""
    said = b""
    while b"\n" not in said and len(said) <= LONGEST_REQUEST and (more := caller.recv(LONGEST_REQUEST)):
        said += more
    return said.partition(b"\n")[0]
