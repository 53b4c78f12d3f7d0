"""One socket with the gRPC server behind it, which comes back when somebody removes the socket's file. The server has two of them.

gRPC makes the socket under a hidden name and we give it its own: so it is never seen before it answers, nor with rights that it should
not have, and what gRPC removes by name when a server ends is never the socket of its successor.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path

import grpc

from fake_driver.errors import ConfigurationError


class Listener:
    """Serves at a path, as long as nobody else does."""

    def __init__(self, path: Path, make: Callable[[], grpc.Server], grace: float) -> None:
        self.path, self._make, self._grace = path, make, grace
        self._server: grpc.Server | None = None
        self._inode = 0

    def open(self) -> None:
        """Serve."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        hidden = self.path.with_name(f".{secrets.token_hex(4)}")
        server = self._make()
        try:
            server.add_insecure_port(f"unix:{hidden}")
            server.start()
            hidden.chmod(0o600)
            self._inode = hidden.stat().st_ino
            hidden.rename(self.path)
        except (RuntimeError, OSError) as refused:
            server.stop(0)
            hidden.unlink(missing_ok=True)
            raise ConfigurationError(f"cannot listen on {self.path}: {refused}") from refused
        self._server = server

    def is_file_missing(self) -> bool:
        """Whether the file is gone. One that somebody else put there is his: two processes shall not fight for it."""
        return self._server is not None and not os.path.lexists(self.path)

    def reopen(self) -> None:
        """Serve again; calls that are under way at the old place come to their end."""
        before = self._server
        self.open()
        if before:
            before.stop(self._grace)

    def remove_file(self) -> None:
        """Take the file away, if it is ours: nobody comes any more."""
        with contextlib.suppress(FileNotFoundError):
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()

    def close(self, grace: float) -> threading.Event:
        """End: no new calls, the old ones have this long; the event is set when the last has ended."""
        self.remove_file()
        ended = threading.Event()
        ended.set()
        return self._server.stop(grace) if self._server else ended
