from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator

import pytest

from fake_driver.api.deadline_socket import DeadlineSocket


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def test_reading_fails_after_the_deadline(listener: socket.socket) -> None:
    mine = DeadlineSocket(listener.getsockname(), None, time.monotonic() + 5)
    theirs, _ = listener.accept()
    with theirs:
        mine.sendall(b"hello\n")
        assert theirs.recv(100) == b"hello\n"
        theirs.sendall(b"one\ntwo\n")
        with mine.makefile("rb") as file:
            assert file.readline() == b"one\n"
            mine.deadline = time.monotonic()
            assert file.readline() == b"two\n", "what was there in time"
            with pytest.raises(TimeoutError):
                file.readline()
        mine.close()
        assert theirs.recv(1) == b""


def test_sending_and_connecting_fail_after_the_deadline(listener: socket.socket) -> None:
    with pytest.raises(TimeoutError):
        DeadlineSocket(listener.getsockname(), None, time.monotonic())
    late = DeadlineSocket(listener.getsockname(), None, time.monotonic() + 5)
    late.deadline = time.monotonic()
    with pytest.raises(TimeoutError):
        late.sendall(b"x")
    late.close()


def test_a_tls_handshake_fails_after_the_deadline(listener: socket.socket) -> None:
    with pytest.raises(TimeoutError):
        DeadlineSocket(listener.getsockname(), ssl.create_default_context(), time.monotonic() + 0.05)
