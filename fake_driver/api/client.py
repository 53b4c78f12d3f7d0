"""A very small client of the Kubernetes API: one server, one token that rotates, plain dicts. Slices and claims go through it.

The standard library is enough for that, and a node pays for every further package in memory.
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
# A call of the kubelet lasts 45 s at most and may hold several claims.
REQUEST_TIMEOUT = 8.0
_REUSED_TOO_LATE = (
    http.client.RemoteDisconnected,
    http.client.CannotSendRequest,
    BrokenPipeError,
    ConnectionResetError,
    ssl.SSLEOFError,  # a reset, as seen by who writes
    ssl.SSLZeroReturnError,
)


def url_path(*words: str) -> str:
    """A URL path from words, each of them quoted."""
    return "/" + "/".join(quote(word, safe="") for word in words)


@dataclass(frozen=True)
class _Request:
    """One request; the same again on another connection is still the same request."""

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
        # JSON is YAML, and this is the name of server-side apply that all servers know.
        return "application/apply-patch+yaml" if self.method == "PATCH" else "application/json"


class ApiClient:
    """The API server. Thread-safe; connections are kept and used again. `told` hears method, path and status of each answer; 0 is none."""

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
        self._guard = threading.Lock()
        self._closed = False

    @classmethod
    def from_settings(cls, settings: Settings, on_response: Callable[[str, str, int], None]) -> ApiClient:
        """Return the client that the settings describe. It sends the token only over TLS."""
        is_secure = settings.api_server.startswith("https:")
        token = Path(settings.token_file) if settings.token_file and is_secure else None
        authority = Path(settings.ca_file) if settings.ca_file else None
        return cls(settings.api_server, token_file=token, ca_file=authority, on_response=on_response)

    def get(self, path: str, query: Mapping[str, str] | None = None, *, timeout: float = REQUEST_TIMEOUT) -> Object:
        """One object or a list; `timeout` is how many seconds it may take in all."""
        return self._call("GET", path, query, timeout=timeout)

    def create(self, path: str, body: Object, query: Mapping[str, str] | None = None) -> Object:
        """A new object, as the server stored it."""
        return self._call("POST", path, query, body)

    def replace(self, path: str, body: Object, query: Mapping[str, str] | None = None) -> Object:
        """A changed object, as the server stored it."""
        return self._call("PUT", path, query, body)

    def apply(self, path: str, body: Object, *, manager: str) -> Object:
        """Fields that a field manager owns from now on, whoever had them; the object as the server stored it."""
        return self._call("PATCH", path, {"fieldManager": manager, "force": "true"}, body)

    def delete(self, path: str, *, uid: str) -> None:
        """The end of an object, if it still is the one with that UID; one that is gone is fine."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        try:
            self._call("DELETE", path, body=options)
        except ApiError as refused:
            if refused.status != 404:
                raise

    def watch(self, path: str, query: Mapping[str, str], seconds: int) -> Generator[Object]:
        """Watch events, until the server ends the watch after `seconds` or `close()` is called."""
        connection = self._connect()
        try:
            query = {**query, "watch": "true", "timeoutSeconds": str(seconds)}
            response = self._send(
                connection, _Request("GET", path, query, None), time.monotonic() + seconds + REQUEST_TIMEOUT
            )
            while line := response.readline():
                yield _parsed(f"watch {path}", line)
        except (OSError, http.client.HTTPException, ValueError) as lost:
            raise ApiError(f"watch {path}", 0, str(lost) or type(lost).__name__) from lost
        finally:
            self._discard(connection)

    def close(self) -> None:
        """End all that is under way, also in other threads; later calls get an error."""
        with self._guard:
            self._closed = True
            idle = tuple(self._idle)
            self._idle.clear()
            busy = self._open.difference(idle)
        for connection in idle:
            self._discard(connection)
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
            raise ApiError(what, 0, "the caller left no time for it")
        try:
            text = self._exchange(_Request(method, path, query, body), time.monotonic() + timeout)
        except (OSError, http.client.HTTPException, ValueError) as lost:
            self._on_response(method, path, 0)
            raise ApiError(what, 0, str(lost) or type(lost).__name__) from lost
        return _parsed(what, text)

    def _exchange(self, request: _Request, deadline: float) -> bytes:
        try:
            connection = self._idle.pop()
        except IndexError:
            return self._once(self._connect(), request, deadline)
        try:
            return self._once(connection, request, deadline)
        except _REUSED_TOO_LATE:
            # The server closed it while it lay idle; that says nothing about this request.
            return self._once(self._connect(), request, deadline)

    def _once(self, connection: http.client.HTTPConnection, request: _Request, deadline: float) -> bytes:
        try:
            text = self._send(connection, request, deadline).read()
        except BaseException:
            self._discard(connection)
            raise
        with self._guard:
            is_reusable = connection.sock is not None and not self._closed
            if is_reusable:
                self._idle.append(connection)
        if not is_reusable:
            self._discard(connection)
        return text

    def _send(
        self, connection: http.client.HTTPConnection, request: _Request, deadline: float
    ) -> http.client.HTTPResponse:
        """Send a request and read the head of the answer; a refusal is an ApiError with the server's own words."""
        headers = {"Accept": "application/json", "Content-Type": request.content_type, "User-Agent": "fake-driver"}
        if self._token_file:
            # Read each time: the kubelet replaces it long before it expires.
            headers["Authorization"] = f"Bearer {self._token_file.read_text().strip()}"
        sock = connection.sock
        if not isinstance(sock, DeadlineSocket):
            sock = connection.sock = self._dial(deadline)
        sock.deadline = deadline
        connection.request(request.method, request.target, request.content, headers)
        response = connection.getresponse()
        self._on_response(request.method, request.path, response.status)
        if response.status >= 400:
            raise ApiError(f"{request.method} {request.path}", response.status, _reason(response.read()))
        return response

    def _connect(self) -> http.client.HTTPConnection:
        """A new connection, which is made when something is sent."""
        connection = http.client.HTTPConnection(self._host, self._port)
        with self._guard:
            if self._closed:
                raise ApiError(self._host, 0, "the driver is shutting down")
            self._open.add(connection)
        return connection

    def _dial(self, deadline: float) -> DeadlineSocket:
        """Connect, also for a long watch soon or not at all.

        `close()` may have come in between, when there was no socket yet that it could have ended.
        """
        made = DeadlineSocket((self._host, self._port), self._tls, min(deadline, time.monotonic() + REQUEST_TIMEOUT))
        if self._closed:
            made.close()
            raise ConnectionAbortedError("the driver is shutting down")
        return made

    def _discard(self, connection: http.client.HTTPConnection) -> None:
        connection.close()
        with self._guard:
            self._open.discard(connection)


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as unusable:
        raise ConfigurationError(f"the CA file {ca_file} cannot be used: {unusable}") from unusable


def _parsed(what: str, text: bytes) -> Object:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as garbled:
        raise ApiError(what, 0, f"the answer is not JSON: {text[:200]!r}") from garbled
    if not isinstance(found, dict):
        raise ApiError(what, 0, f"the answer is not an object: {text[:200]!r}")
    return found


def _reason(text: bytes) -> str:
    with contextlib.suppress(ValueError, AttributeError, RecursionError):
        return str(json.loads(text).get("message", ""))[:2000]
    return text[:500].decode(errors="replace")
