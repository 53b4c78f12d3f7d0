"""A minimal NRI plugin: it is asked about each new container, and may refuse it or add variables and mounts. `leaks` decides which.

NRI is ttrpc on one socket with two connections: on the first one the runtime calls the plugin, on the second one the plugin registers.
"""

from __future__ import annotations

import logging
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fake_driver.mutants.leaks.protobuf import message, parts, texts

log = logging.getLogger(__name__)

SOCKET = Path("/var/run/nri/nri.sock")
_TO_PLUGIN, _TO_RUNTIME = 1, 2  # connections
_REQUEST, _RESPONSE = 1, 2  # types of messages
_FRAME, _HEADER = struct.Struct(">II"), struct.Struct(">IIBB")
_CREATE_CONTAINER = 1 << 3  # in the mask of events
_RETRY_SECONDS = 0.2
_PERMISSION_DENIED = 7  # of gRPC


class RefusedContainerError(Exception):
    """The plugin does not let the runtime create a container."""


@dataclass(frozen=True)
class NewContainer:
    """A container that the runtime creates: its pod's sandbox, its name, its variables, and where it mounts something."""

    sandbox: str
    name: str
    environment: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Additions:
    """What a container gets: variables, and files and character devices of the node by their paths in the container."""

    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    character_devices: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # major and minor numbers


Decide = Callable[[NewContainer], Additions | None]


def run_forever(name: str, decide: Decide, path: Path = SOCKET) -> None:
    """Serve the container runtime, and connect again when it restarts."""
    pause = threading.Event()
    while not pause.wait(_RETRY_SECONDS):
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                Plugin(connection, decide).serve(name)
        except (OSError, EOFError) as broken:
            log.debug("NRI is not available: %s", broken)


def start(name: str, decide: Decide) -> None:
    """Serve the container runtime in a thread."""
    threading.Thread(target=run_forever, args=(name, decide), name="nri", daemon=True).start()


class Plugin:
    """One connection to the container runtime."""

    def __init__(self, connection: socket.socket, decide: Decide) -> None:
        self._connection, self._decide = connection, decide
        self._received = {_TO_PLUGIN: b"", _TO_RUNTIME: b""}

    def serve(self, name: str) -> None:
        """Register the plugin, and answer the runtime's calls until it closes the connection with EOFError."""
        registration = message((1, name), (2, "90"))
        call = message((1, "nri.pkg.api.v1alpha1.Runtime"), (2, "RegisterPlugin"), (3, registration))
        self._send(_TO_RUNTIME, 1, _REQUEST, call)
        while True:
            connection, payload = self._read_frame()
            self._received[connection] += payload
            if connection == _TO_PLUGIN:
                self._answer_calls()

    def _answer_calls(self) -> None:
        received = self._received[_TO_PLUGIN]
        while len(received) >= _HEADER.size:
            length, stream, kind, _ = _HEADER.unpack_from(received)
            if len(received) < _HEADER.size + length:
                break
            call, received = received[_HEADER.size : _HEADER.size + length], received[_HEADER.size + length :]
            if kind == _REQUEST:
                self._send(_TO_PLUGIN, stream, _RESPONSE, self._response(call))
        self._received[_TO_PLUGIN] = received

    def _response(self, call: bytes) -> bytes:
        try:
            return message((2, self._answer(call)))
        except RefusedContainerError as refused:
            return message((1, message((1, _PERMISSION_DENIED), (2, str(refused)))))

    def _answer(self, call: bytes) -> bytes:
        """Return the answer to a call; it is empty for those that need none."""
        (method,) = texts(call, 2)
        if method == "Configure":
            return message((2, _CREATE_CONTAINER))
        if method != "CreateContainer":
            return b""
        (container,) = parts(b"".join(parts(call, 3)), 2)
        added = self._decide(_new_container(container))
        return message((1, _adjustment(added))) if added else b""

    def _send(self, connection: int, stream: int, kind: int, payload: bytes) -> None:
        content = _HEADER.pack(len(payload), stream, kind, 0) + payload
        self._connection.sendall(_FRAME.pack(connection, len(content)) + content)

    def _read_frame(self) -> tuple[int, bytes]:
        connection, length = _FRAME.unpack(self._read(_FRAME.size))
        return connection, self._read(length)

    def _read(self, length: int) -> bytes:
        found = b""
        while len(found) < length:
            more = self._connection.recv(length - len(found))
            if not more:
                raise EOFError("the container runtime closed the connection")
            found += more
        return found


def _new_container(content: bytes) -> NewContainer:
    (sandbox,), (name,) = texts(content, 2), texts(content, 3)
    mounts = [path for each in parts(content, 9) for path in texts(each, 1)]
    return NewContainer(sandbox, name, tuple(texts(content, 8)), tuple(mounts))


def _adjustment(added: Additions) -> bytes:
    mounts = [
        (3, message((1, path), (2, "bind"), (3, str(source)), (4, "ro"), (4, "rbind")))
        for path, source in added.files.items()
    ]
    variables = [(4, message((1, name), (2, value))) for name, value in added.environment.items()]
    nodes = [
        (1, message((1, path), (2, "c"), (3, major), (4, minor)))
        for path, (major, minor) in added.character_devices.items()
    ]
    return message(*mounts, *variables, (6, message(*nodes)))
