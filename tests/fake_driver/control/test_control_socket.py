"""Slow clients of the control socket are dropped and delay no other."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_driver.control import control_socket
from fake_driver.control.control_socket import ControlSocket


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the path of a control socket that echoes requests and gives clients 0.5 s."""
    monkeypatch.setattr(control_socket, "_CLIENT_TIMEOUT", 0.5)
    server = ControlSocket(tmp_path / "control.sock", lambda request: {"ok": True, "request": request})
    server.start()
    yield server.path
    server.stop()


def _connected(path: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(5)
    client.connect(str(path))
    return client


def _ask(path: Path) -> Any:
    with _connected(path) as client:
        client.sendall(b"1\n")
        return json.loads(client.recv(1000))


def _send_slowly(client: socket.socket) -> None:
    for _ in range(100):
        client.sendall(b" ")
        threading.Event().wait(0.05)


def test_a_client_that_sends_byte_by_byte_is_dropped(path: Path) -> None:
    began = time.monotonic()
    with _connected(path) as client, pytest.raises(OSError):  # noqa: PT011 - a broken pipe or a reset connection
        _send_slowly(client)
    assert time.monotonic() - began < 4


def test_silent_clients_do_not_delay_others(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_socket, "_CLIENT_TIMEOUT", 30)
    silent = [_connected(path) for _ in range(5)]
    began = time.monotonic()
    assert _ask(path) == {"ok": True, "request": 1}
    assert time.monotonic() - began < 4
    for each in silent:
        each.close()


def test_too_many_clients_are_disconnected_and_the_socket_stays_usable(path: Path) -> None:
    many = [_connected(path) for _ in range(control_socket._MAX_CLIENTS + 4)]
    assert many[-1].recv(1) == b""
    for each in many:
        each.close()
    assert any(_is_answered(path) for _ in range(100))


def _is_answered(path: Path) -> bool:
    try:
        return bool(_ask(path)["ok"])
    except (OSError, ValueError):  # the other clients are not yet gone
        threading.Event().wait(0.05)
        return False
