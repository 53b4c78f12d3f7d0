"""Run a program in a container, over the API server's websocket. Called by Kube.exec and Kube.attempt alone.

The websocket is opened here and not by the official client, which sends no header but the one with the token: not in whose name.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from kubernetes.stream import ws_client
from websocket import (
    ABNF,
    WebSocket,
    WebSocketConnectionClosedException,
    WebSocketException,
    WebSocketTimeoutException,
)

from testbed.errors import ApiError, CommandFailed
from testbed.kube.transport import Transport
from testbed.process import Completed

_PROTOCOLS = ("Sec-WebSocket-Protocol", "v5.channel.k8s.io,v4.channel.k8s.io")
_OUT, _ERR, _STATUS = 1, 2, 3  # the channels: the first byte of each message


def execute(transport: Transport, path: str, command: Sequence[str], container: str | None, timeout: float) -> str:
    """What the program printed. CommandFailed for its bad status, ApiError where it could not be asked."""
    done, status = _run(transport, path, command, container, timeout)
    if status.get("status") != "Success":
        raise CommandFailed(command, status.get("message", "the connection was lost"), done.stderr or done.stdout)
    return done.stdout


def attempt(
    transport: Transport, path: str, command: Sequence[str], container: str | None, timeout: float
) -> Completed:
    """What became of the program, whatever its status; ApiError where it could not be asked or its status was lost."""
    done, status = _run(transport, path, command, container, timeout)
    if status.get("status") != "Success" and not done.code:
        raise ApiError(f"EXEC {path}", 0, "", str(status.get("message", "the connection was lost")))
    return done


def _run(
    transport: Transport, path: str, command: Sequence[str], container: str | None, timeout: float
) -> tuple[Completed, dict[str, Any]]:
    wanted = [("command", word) for word in command] + [("stdout", "true"), ("stderr", "true")]
    query = urlencode([*wanted, *([("container", container)] if container else [])])
    try:
        with _connected(transport, f"{path}?{query}", timeout) as socket:
            said = _receive(socket, timeout)
        status = json.loads(said[_STATUS] or "{}")
    except WebSocketTimeoutException as late:
        raise ApiError(f"EXEC {path}", 0, "", f"{command[0]} did not end in {timeout:g} s") from late
    except (WebSocketException, OSError, ValueError) as lost:
        raise ApiError(f"EXEC {path}", getattr(lost, "status_code", 0), "", f"no answer: {lost}") from lost
    return Completed(tuple(command), _code(status), _text(said[_OUT]), _text(said[_ERR])), status


@contextlib.contextmanager
def _connected(transport: Transport, path: str, timeout: float) -> Iterator[Any]:
    configuration, headers = transport.configuration, transport.headers()
    url = ws_client.get_websocket_url(f"{configuration.host}{path}")
    sent = [*headers.iteritems(), _PROTOCOLS]
    options: dict[str, Any] = {"header": [f"{name}: {value}" for name, value in sent]}
    if configuration.proxy:
        options = ws_client.websocket_proxycare(options, configuration, url, headers)
    socket: Any = WebSocket(sslopt=_tls(configuration), skip_utf8_validation=True)
    try:
        socket.connect(url, timeout=timeout, **options)
        yield socket
    finally:
        socket.shutdown()  # its close() waits for the server's goodbye


def _tls(configuration: Any) -> dict[str, Any]:
    options = {
        "cert_reqs": ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE,
        "check_hostname": bool(configuration.verify_ssl) and configuration.assert_hostname is not False,
        "ca_certs": configuration.ssl_ca_cert,
        "certfile": configuration.cert_file,
        "keyfile": configuration.key_file,
        "server_hostname": configuration.tls_server_name,
    }
    return {key: value for key, value in options.items() if value is not None}


def _receive(socket: Any, timeout: float) -> defaultdict[int, bytes]:
    """All that is said on each channel until the server closes the connection; after the status it may just drop it."""
    said: defaultdict[int, bytes] = defaultdict(bytes)
    end = time.monotonic() + timeout
    while True:
        socket.settimeout(max(end - time.monotonic(), 0.001))
        try:
            kind, frame = socket.recv_data(control_frame=True)
        except WebSocketConnectionClosedException:
            if said[_STATUS]:
                return said
            raise
        if kind == ABNF.OPCODE_CLOSE:
            return said
        if kind in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) and frame:
            said[frame[0]] += frame[1:]


def _text(said: bytes) -> str:
    return said.decode(errors="replace")


def _code(status: dict[str, Any]) -> int:
    causes = (status.get("details") or {}).get("causes") or ()
    return next((int(each["message"]) for each in causes if each.get("reason") == "ExitCode"), 0)
