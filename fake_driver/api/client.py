"""A small client of the Kubernetes API: one server, a bearer token that is rotated, objects as plain dicts.

It uses only the standard library, because every further package costs memory on each node.
"""

from __future__ import annotations

import collections
import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from fake_driver.api.deadline_socket import DeadlineSocket
from fake_driver.errors import ApiError, ConfigurationError
from fake_driver.settings import Settings

Object = dict[str, Any]
# Seconds. A call of the kubelet lasts at most 45 s and may contain several claims.
REQUEST_TIMEOUT = 8.0
# What a request on a reused connection raises if the server closed the connection while it was idle.
_CLOSED_WHILE_IDLE = (
    http.client.RemoteDisconnected,
    http.client.CannotSendRequest,
    BrokenPipeError,
    ConnectionResetError,
    ssl.SSLEOFError,  # a connection reset while writing
    ssl.SSLZeroReturnError,
)


def url_path(*segments: str) -> str:
    """Return the URL path of these segments, with each segment quoted."""
    return "/" + "/".join(quote(segment, safe="") for segment in segments)


@dataclass(frozen=True)
class _Request:
    """A request, which can be sent again on another connection."""

    method: str
    path: str
    query: Mapping[str, str] | None
    body: Object | None

    @property
    def target(self) -> str:
        return self.path + (f"?{urlencode(self.query)}" if self.query else "")

    @property
    def content(self) -> bytes | None:
        return None if self.body is None else json.dumps(self.body).encode()

    @property
    def content_type(self) -> str:
        # The content type of server-side apply that all API servers accept. JSON is valid YAML.
        return "application/apply-patch+yaml" if self.method == "PATCH" else "application/json"


class ApiClient:
    """A client of one API server. Thread-safe; connections are reused.

    `on_response` is called with the method, path and status of each response; the status is 0 if there was none.
    """

    def __init__(
        self,
        server: str,
        *,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        on_response: Callable[[str, str, int], None] = lambda *_: None,
    ) -> None:
        url = urlsplit(server)
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise ConfigurationError(f"the API server {server!r} is not a URL such as https://10.0.0.1:443")
        self._host, self._port = url.hostname, url.port or (443 if url.scheme == "https" else 80)
        self._token_file, self._on_response = token_file, on_response
        self._tls = _tls(ca_file) if url.scheme == "https" else None
        self._idle: collections.deque[http.client.HTTPConnection] = collections.deque()
        self._open: set[http.client.HTTPConnection] = set()
        self._lock = threading.Lock()
        self._closed = False

    @classmethod
    def from_settings(cls, settings: Settings, on_response: Callable[[str, str, int], None]) -> ApiClient:
        """Return the client that the settings describe. It sends the token only over TLS."""
        is_secure = settings.api_server.startswith("https:")
        token = Path(settings.token_file) if settings.token_file and is_secure else None
        authority = Path(settings.ca_file) if settings.ca_file else None
        return cls(settings.api_server, token_file=token, ca_file=authority, on_response=on_response)

    def get(self, path: str, query: Mapping[str, str] | None = None, *, timeout: float = REQUEST_TIMEOUT) -> Object:
        """Return an object or a list; `timeout` is the number of seconds for all of it."""
        return self._call("GET", path, query, timeout=timeout)

    def create(self, path: str, body: Object, query: Mapping[str, str] | None = None) -> Object:
        """Create an object and return it as the server stored it."""
        return self._call("POST", path, query, body)

    def replace(self, path: str, body: Object, query: Mapping[str, str] | None = None) -> Object:
        """Replace an object and return it as the server stored it."""
        return self._call("PUT", path, query, body)

    def apply(self, path: str, body: Object, *, field_manager: str) -> Object:
        """Apply fields with server-side apply, forcing conflicts, and return the object as the server stored it."""
        return self._call("PATCH", path, {"fieldManager": field_manager, "force": "true"}, body)

    def delete(self, path: str, *, uid: str) -> None:
        """Delete the object if it still has this UID. An object that no longer exists is no error."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        try:
            self._call("DELETE", path, body=options)
        except ApiError as refused:
            if refused.status != 404:
                raise

    def watch(self, path: str, query: Mapping[str, str], seconds: int) -> Generator[Object]:
        """Yield watch events until the server ends the watch after `seconds`, or until `close()` is called."""
        connection = self._connect()
        try:
            query = {**query, "watch": "true", "timeoutSeconds": str(seconds)}
            response = self._send(
                connection, _Request("GET", path, query, None), time.monotonic() + seconds + REQUEST_TIMEOUT
            )
            while line := response.readline():
                yield _parse(f"watch {path}", line)
        except (OSError, http.client.HTTPException, ValueError) as failed:
            raise ApiError(f"watch {path}", 0, str(failed) or type(failed).__name__) from failed
        finally:
            self._close(connection)

    def close(self) -> None:
        """Close all connections, which ends the requests of other threads; later requests raise ApiError."""
        with self._lock:
            self._closed = True
            idle = tuple(self._idle)
            self._idle.clear()
            busy = self._open.difference(idle)
        for connection in idle:
            self._close(connection)
        for connection in busy:
            if connection.sock:
                with contextlib.suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        timeout: float = REQUEST_TIMEOUT,
    ) -> Object:
        what = f"{method} {path}"
        if timeout <= 0:
            raise ApiError(what, 0, "not sent: the caller's deadline is exceeded")
        try:
            text = self._send_and_read(_Request(method, path, query, body), time.monotonic() + timeout)
        except (OSError, http.client.HTTPException, ValueError) as failed:
            self._on_response(method, path, 0)
            raise ApiError(what, 0, str(failed) or type(failed).__name__) from failed
        return _parse(what, text)

    def _send_and_read(self, request: _Request, deadline: float) -> bytes:
        try:
            connection = self._idle.pop()
        except IndexError:
            return self._exchange(self._connect(), request, deadline)
        try:
            return self._exchange(connection, request, deadline)
        except _CLOSED_WHILE_IDLE:
            # Not an error of this request, so it is sent again.
            return self._exchange(self._connect(), request, deadline)

    def _exchange(self, connection: http.client.HTTPConnection, request: _Request, deadline: float) -> bytes:
        try:
            text = self._send(connection, request, deadline).read()
        except BaseException:
            self._close(connection)
            raise
        with self._lock:
            is_reusable = connection.sock is not None and not self._closed
            if is_reusable:
                self._idle.append(connection)
        if not is_reusable:
            self._close(connection)
        return text

    def _send(
        self, connection: http.client.HTTPConnection, request: _Request, deadline: float
    ) -> http.client.HTTPResponse:
        """Send a request and return the response with its body unread; raise ApiError with the server's message if it was refused."""
        headers = {"Accept": "application/json", "Content-Type": request.content_type, "User-Agent": "fake-driver"}
        if self._token_file:
            # Read for each request: the kubelet replaces the token before it expires.
            headers["Authorization"] = f"Bearer {self._token_file.read_text().strip()}"
        sock = connection.sock
        if not isinstance(sock, DeadlineSocket):
            sock = connection.sock = self._dial(deadline)
        sock.deadline = deadline
        connection.request(request.method, request.target, request.content, headers)
        response = connection.getresponse()
        self._on_response(request.method, request.path, response.status)
        if response.status >= 400:
            raise ApiError(f"{request.method} {request.path}", response.status, _message(response.read()))
        return response

    def _connect(self) -> http.client.HTTPConnection:
        """Return a new connection, which connects when the first request is sent."""
        connection = http.client.HTTPConnection(self._host, self._port)
        with self._lock:
            if self._closed:
                raise ApiError(self._host, 0, "the driver is shutting down")
            self._open.add(connection)
        return connection

    def _dial(self, deadline: float) -> DeadlineSocket:
        """Connect. The time to connect is limited even for a watch, which has a late deadline.

        `close()` may have run meanwhile; it could not close a socket that did not exist yet.
        """
        connected = DeadlineSocket(
            (self._host, self._port), self._tls, min(deadline, time.monotonic() + REQUEST_TIMEOUT)
        )
        if self._closed:
            connected.close()
            raise ConnectionAbortedError("the driver is shutting down")
        return connected

    def _close(self, connection: http.client.HTTPConnection) -> None:
        connection.close()
        with self._lock:
            self._open.discard(connection)


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise ConfigurationError(f"the CA file {ca_file} cannot be used: {error}") from error


def _parse(request: str, text: bytes) -> Object:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as invalid:
        raise ApiError(request, 0, f"the response is not JSON: {text[:200]!r}") from invalid
    if not isinstance(found, dict):
        raise ApiError(request, 0, f"the response is not an object: {text[:200]!r}")
    return found


def _message(text: bytes) -> str:
    with contextlib.suppress(ValueError, AttributeError, RecursionError):
        return str(json.loads(text).get("message", ""))[:2000]
    return text[:500].decode(errors="replace")
