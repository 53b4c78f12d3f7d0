"""The control socket of a running driver: a connection carries one request and one response, each a JSON line.

The socket is in the driver's data folder and only accessible to root, that is, to users who may execute programs in the driver's pod.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)
MAX_REQUEST = 2**16
_CLIENT_TIMEOUT = 5.0  # seconds for a client to send its whole request, and for it to read the response
_MAX_CLIENTS = 16  # at the same time; more are disconnected at once


class ControlSocket:
    """Answers requests one after the other. Each client has a thread, so that a slow one delays no other."""

    def __init__(self, path: Path, handle: Callable[[object], dict[str, Any]]) -> None:
        self.path, self._handle = path, handle
        self._listener: socket.socket | None = None
        self._inode = 0
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)
        self._handling = threading.Lock()
        self._places = threading.BoundedSemaphore(_MAX_CLIENTS)

    def start(self) -> None:
        """Start to listen. The socket gets its name when its permissions are set and it accepts connections."""
        hidden = self.path.with_name(f".{secrets.token_hex(4)}")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(hidden))
        hidden.chmod(0o600)
        self._inode = hidden.stat().st_ino
        self._listener.listen()
        hidden.rename(self.path)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and remove the file unless another process has replaced it."""
        if self._listener is None:
            return
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends `accept`
        self._thread.join(_CLIENT_TIMEOUT)
        self._listener.close()
        with contextlib.suppress(FileNotFoundError):
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()

    def _run(self) -> None:
        while self._listener:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._places.acquire(blocking=False):
                threading.Thread(target=self._serve, args=(client,), name="control client", daemon=True).start()
            else:
                log.warning("a client of the control socket was disconnected: %d others are connected", _MAX_CLIENTS)
                client.close()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client:
                line = _line(client, time.monotonic() + _CLIENT_TIMEOUT)
                with self._handling:
                    response = self._respond(line)
                client.settimeout(_CLIENT_TIMEOUT)  # for the whole response: `sendall` has one deadline
                client.sendall(json.dumps(response).encode() + b"\n")
        except OSError as lost:
            log.info("a client of the control socket disconnected: %s", lost)
        finally:
            self._places.release()

    def _respond(self, line: bytes) -> dict[str, Any]:
        if len(line) > MAX_REQUEST:
            return _error(f"is longer than {MAX_REQUEST} bytes")
        try:
            request = json.loads(line)
        except (ValueError, RecursionError) as invalid:
            return _error(f"is not JSON: {invalid}")
        return self._handle(request)


def _error(why: str) -> dict[str, Any]:
    return {"ok": False, "error": f"nothing was changed: the request {why}"}


def _line(client: socket.socket, deadline: float) -> bytes:
    """Read a line, or the first bytes of one that is too long. Raise TimeoutError if it is not complete before the deadline."""
    received = b""
    while b"\n" not in received and len(received) <= MAX_REQUEST:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("the request was not complete in time")
        client.settimeout(remaining)
        more = client.recv(MAX_REQUEST)
        if not more:
            break
        received += more
    return received.partition(b"\n")[0]
