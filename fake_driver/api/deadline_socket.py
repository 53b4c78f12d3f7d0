"""A socket of which all that is done with it together has to be over at a time. The API client gives it to `http.client`.

A timeout of a socket is one for each operation: a server that sends a byte now and then would never be too late.
"""

from __future__ import annotations

import io
import socket
import ssl
import time

_OPTIONS = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    # Keep-alives find a server that vanished under a quiet watch.
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)


class DeadlineSocket:
    """A connection, deadline `deadline`, which may be put off for the next request."""

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None, deadline: float) -> None:
        self.deadline = deadline
        self._sock = socket.create_connection(address, _left(deadline))
        try:
            for level, option, value in _OPTIONS:
                self._sock.setsockopt(level, option, value)
            if tls:
                self._sock.settimeout(_left(deadline))
                self._sock = tls.wrap_socket(self._sock, server_hostname=address[0])
        except BaseException:
            self._sock.close()
            raise

    def sendall(self, data: bytes) -> None:
        """Send all."""
        self.apply_deadline()
        self._sock.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        """What comes, as a file to read from."""
        return io.BufferedReader(_Reader(self, self._sock.makefile(mode, buffering=0)))  # type: ignore[call-overload] # the mode is http.client's "rb"

    def apply_deadline(self) -> None:
        """Leave the next operation the time that is left."""
        self._sock.settimeout(_left(self.deadline))

    def shutdown(self, how: int) -> None:
        """End it under whoever reads or writes."""
        self._sock.shutdown(how)

    def close(self) -> None:
        """Close it; a file of it that is open keeps it deadline then."""
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


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
