"""Runs a program in a container, over the API server's websocket. Used by Kube.exec and Kube.exec_unchecked.

The official client is not used because it sends only the token header, but no headers for impersonation.
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
_STDOUT, _STDERR, _STATUS = 1, 2, 3  # the channels: the first byte of each message


def execute(transport: Transport, path: str, command: Sequence[str], container: str | None, timeout: float) -> str:
    """Return what the program printed. Raise CommandFailed if it failed, or ApiError if it could not be started."""
    done, status = _run(transport, path, command, container, timeout)
    if status.get("status") != "Success":
        raise CommandFailed(command, status.get("message", "the connection was lost"), done.stderr or done.stdout)
    return done.stdout


def execute_unchecked(
    transport: Transport, path: str, command: Sequence[str], container: str | None, timeout: float
) -> Completed:
    """Return the program's outputs and exit code. Raise ApiError if it could not be started or its exit code was lost."""
    done, status = _run(transport, path, command, container, timeout)
    if status.get("status") != "Success" and not done.code:
        raise ApiError(f"EXEC {path}", 0, "", str(status.get("message", "the connection was lost")))
    return done


def _run(
    transport: Transport, path: str, command: Sequence[str], container: str | None, timeout: float
) -> tuple[Completed, dict[str, Any]]:
    options = [("command", word) for word in command] + [("stdout", "true"), ("stderr", "true")]
    query = urlencode([*options, *([("container", container)] if container else [])])
    try:
        with _connected(transport, f"{path}?{query}", timeout) as socket:
            received = _receive(socket, timeout)
        status = json.loads(received[_STATUS] or "{}")
    except WebSocketTimeoutException as late:
        raise ApiError(f"EXEC {path}", 0, "", f"{command[0]} did not finish within {timeout:g} s") from late
    except (WebSocketException, OSError, ValueError) as lost:
        raise ApiError(f"EXEC {path}", getattr(lost, "status_code", 0), "", f"no answer: {lost}") from lost
    return Completed(tuple(command), _exit_code(status), _text(received[_STDOUT]), _text(received[_STDERR])), status


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
        socket.shutdown()  # close() would wait for the server's close frame


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
    """Return what each channel received until the server closed the connection. After the status it may just drop it."""
    received: defaultdict[int, bytes] = defaultdict(bytes)
    end = time.monotonic() + timeout
    while True:
        socket.settimeout(max(end - time.monotonic(), 0.001))
        try:
            kind, frame = socket.recv_data(control_frame=True)
        except WebSocketConnectionClosedException:
            if received[_STATUS]:
                return received
            raise
        if kind == ABNF.OPCODE_CLOSE:
            return received
        if kind in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) and frame:
            received[frame[0]] += frame[1:]


def _text(received: bytes) -> str:
    return received.decode(errors="replace")


def _exit_code(status: dict[str, Any]) -> int:
    causes = (status.get("details") or {}).get("causes") or ()
    return next((int(each["message"]) for each in causes if each.get("reason") == "ExitCode"), 0)
