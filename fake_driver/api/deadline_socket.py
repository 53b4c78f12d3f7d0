"""A socket with one deadline for all of its operations, which the API client passes to `http.client`.

The timeout of a normal socket applies to each operation: a server that sends a byte now and then never exceeds it.
"""

from __future__ import annotations

import io
import socket
import ssl
import time

_OPTIONS = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    # Keep-alives detect a server that disappeared during a watch without events.
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)


class DeadlineSocket:
    """A connection whose operations raise TimeoutError after `deadline`, which can be changed for the next request."""

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None, deadline: float) -> None:
        self.deadline = deadline
        self._sock = socket.create_connection(address, _remaining(deadline))
        try:
            for level, option, value in _OPTIONS:
                self._sock.setsockopt(level, option, value)
            if tls:
                self._sock.settimeout(_remaining(deadline))
                self._sock = tls.wrap_socket(self._sock, server_hostname=address[0])
        except BaseException:
            self._sock.close()
            raise

    def sendall(self, data: bytes) -> None:
        """Send all bytes before the deadline."""
        self.apply_deadline()
        self._sock.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a file that reads from the socket."""
        return io.BufferedReader(_Reader(self, self._sock.makefile(mode, buffering=0)))  # type: ignore[call-overload] # the mode is http.client's "rb"

    def apply_deadline(self) -> None:
        """Set the timeout of the next operation to the time that remains."""
        self._sock.settimeout(_remaining(self.deadline))

    def shutdown(self, how: int) -> None:
        """Shut the connection down, which ends blocked reads and writes."""
        self._sock.shutdown(how)

    def close(self) -> None:
        """Close the socket; it stays open until files from `makefile` are closed."""
        self._sock.close()


class _Reader(io.RawIOBase):
    def __init__(self, connection: DeadlineSocket, file: io.RawIOBase) -> None:
        self._connection, self._file = connection, file

    def readable(self) -> bool:
        return True

    def readinto(self, into: bytearray | memoryview) -> int | None:  # type: ignore[override] # as BufferedReader calls it
        self._connection.apply_deadline()
        return self._file.readinto(into)

    def close(self) -> None:
        self._file.close()
        super().close()


def _remaining(deadline: float) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError("timed out")
    return remaining
