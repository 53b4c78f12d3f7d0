"""A socket with a gRPC server behind it, which can be opened again after its file was removed. The plugin server has two of them.

gRPC creates the socket with a hidden name, and we rename it. So it is never visible before it answers or with the wrong permissions, and
gRPC does not remove the socket of a successor when a server stops.
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
    """A gRPC server at a socket path. It leaves the file of another process at this path alone."""

    def __init__(self, path: Path, make_server: Callable[[], grpc.Server], grace: float) -> None:
        self.path, self._make_server, self._grace = path, make_server, grace
        self._server: grpc.Server | None = None
        self._inode = 0

    def open(self) -> None:
        """Create the socket and serve. Raise ConfigurationError if that fails."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        hidden = self.path.with_name(f".{secrets.token_hex(4)}")
        server = self._make_server()
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
        """Return True if no file is at the path. A file of another process counts: two processes must not replace each other's sockets."""
        return self._server is not None and not os.path.lexists(self.path)

    def reopen(self) -> None:
        """Serve on a new socket; calls on the old one can finish within the grace period."""
        previous = self._server
        self.open()
        if previous:
            previous.stop(self._grace)

    def remove_file(self) -> None:
        """Remove the socket's file if it is ours, so that no new connections arrive."""
        with contextlib.suppress(FileNotFoundError):
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()

    def close(self, grace: float) -> threading.Event:
        """Stop: refuse new calls and give running ones `grace` seconds. Return an event that is set when the last one has finished."""
        self.remove_file()
        ended = threading.Event()
        ended.set()
        return self._server.stop(grace) if self._server else ended
