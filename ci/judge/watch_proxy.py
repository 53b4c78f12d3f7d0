"""An HTTP server in front of an API server that forwards all requests, but delivers watch events late or not at all.

A testbed whose kubeconfig leads here watches the cluster through the proxy. The proxy uses the credentials of the kubeconfig itself;
its callers send the proxy's own token. For `running`.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import secrets
import select
import socket
import ssl
import tempfile
import threading
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

_HOP_BY_HOP = ("connection", "transfer-encoding", "content-length", "keep-alive", "host", "authorization")
_PATIENCE = 120.0  # seconds for an answer of the API server: its callers give up before


@dataclass(frozen=True)
class Upstream:
    """The API server behind the proxy; without a TLS context it is reached by plain HTTP."""

    host: str
    port: int
    tls: ssl.SSLContext | None

    @classmethod
    def of(cls, kubeconfig: Mapping[str, Any]) -> Upstream:
        """Return the server of a kubeconfig with one cluster and one user."""
        cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        url = urlsplit(cluster["server"])
        if url.scheme == "http":
            return cls(str(url.hostname), url.port or 80, None)
        context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pair:  # only its owner can read it
            pair.write(b64decode(user["client-certificate-data"]) + b"\n" + b64decode(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
        return cls(str(url.hostname), url.port or 443, context)

    def connect(self) -> http.client.HTTPConnection:
        """Return a new connection."""
        if self.tls is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=_PATIENCE)
        return http.client.HTTPSConnection(self.host, self.port, timeout=_PATIENCE, context=self.tls)


@dataclass
class WatchProxy:
    """What the proxy does with watch events: each one is `delay` seconds late, and those of the types in `drop` are dropped."""

    upstream: Upstream
    delay: float = 0.0
    drop: tuple[str, ...] = ()
    changed: int = 0  # events that were late or dropped
    token: str = field(
        default_factory=secrets.token_urlsafe
    )  # others on this host could act as the administrator without it
    _changes: threading.Lock = field(default_factory=threading.Lock)

    def delivered(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the events of a watch that the caller gets, when it gets them. When the watch ends, late ones are lost."""
        waiting: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        end, ended = [float("inf")], threading.Event()

        def read() -> None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                for line in lines:
                    waiting.put((time.monotonic() + self.delay, line))
            end[0] = time.monotonic()
            ended.set()
            waiting.put((end[0], b""))

        threading.Thread(target=read, daemon=True).start()
        while True:
            due, line = waiting.get()
            ended.wait(max(0.0, due - time.monotonic()))
            if not line:
                return
            is_lost = due > end[0] or json.loads(line).get("type") in self.drop
            self._count(changed=is_lost or self.delay > 0)
            if not is_lost:
                yield line

    def _count(self, *, changed: bool) -> None:
        with self._changes:
            self.changed += changed


@contextlib.contextmanager
def running(proxy: WatchProxy) -> Iterator[str]:
    """Serve on the loopback interface; yield the URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": proxy}))
    server.daemon_threads = True
    server.block_on_close = False  # a watch may last
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def in_front_of(kubeconfig: Path, url: str, token: str) -> Iterator[None]:
    """Let a kubeconfig lead to a proxy for the block. It has only the proxy's token then: the connection is not encrypted."""
    before = kubeconfig.read_text()
    content = yaml.safe_load(before)
    content["clusters"][0]["cluster"] = {"server": url}
    content["users"][0]["user"] = {"token": token}
    try:
        _replace(kubeconfig, json.dumps(content))
        yield
    finally:
        _replace(kubeconfig, before)


def _replace(file: Path, text: str) -> None:
    """Replace a file's content atomically, for its owner only."""
    new = file.with_name(f".{file.name}.new")
    new.touch(mode=0o600)
    new.write_text(text)
    new.replace(file)


class _Handler(BaseHTTPRequestHandler):
    """Forwards requests that have the proxy's token. `running` derives a class with the proxy from it."""

    proxy: WatchProxy
    protocol_version = "HTTP/1.1"

    def forward(self) -> None:
        """Forward one request: a watch, a connection that changes its protocol (exec), or any other."""
        try:
            if not self._is_allowed():
                self.close_connection = True
                self.send_error(http.HTTPStatus.UNAUTHORIZED)
            elif self.headers.get("Upgrade"):
                self._tunnel()
            else:
                self._exchange()
        except (OSError, http.client.HTTPException) as lost:
            self.close_connection = True  # the caller sees a lost connection, as it would without the proxy
            self.log_error("%s %s: %s", self.command, self.path, lost)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward  # noqa: N815 - names of http.server

    def _is_allowed(self) -> bool:
        sent = self.headers.get("Authorization", "")
        return secrets.compare_digest(sent.encode(), f"Bearer {self.proxy.token}".encode())

    def _exchange(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        connection = self.proxy.upstream.connect()
        try:
            connection.putrequest(self.command, self.path, skip_accept_encoding=True)
            for name, value in self.headers.items():  # a name may occur several times
                if name.lower() not in _HOP_BY_HOP:
                    connection.putheader(name, value)
            if body:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            if answer.status == http.HTTPStatus.OK and is_watch(self.path):
                self._stream(answer)
            else:
                self._answer(answer, answer.read())
        finally:
            connection.close()

    def _answer(self, answer: http.client.HTTPResponse, body: bytes) -> None:
        self._head(answer, {"Content-Length": str(len(body))})
        self.wfile.write(body)

    def _stream(self, answer: http.client.HTTPResponse) -> None:
        self._head(answer, {"Connection": "close"})
        self.close_connection = True
        for line in self.proxy.delivered(iter(answer.readline, b"")):
            self.wfile.write(line)

    def _head(self, answer: http.client.HTTPResponse, more: Mapping[str, str]) -> None:
        self.send_response_only(answer.status, answer.reason)
        kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP]
        for name, value in (*kept, *more.items()):
            self.send_header(name, value)
        self.end_headers()

    def _tunnel(self) -> None:
        """Repeat the request on a new connection, and relay bytes both ways until one side closes."""
        self.close_connection = True
        raw = socket.create_connection((self.proxy.upstream.host, self.proxy.upstream.port), _PATIENCE)
        tls = self.proxy.upstream.tls
        with tls.wrap_socket(raw, server_hostname=self.proxy.upstream.host) if tls else raw as there:
            lines = [self.requestline, f"Host: {self.proxy.upstream.host}"]
            lines += [
                f"{name}: {value}"
                for name, value in self.headers.items()
                if name.lower() not in ("host", "authorization")
            ]
            there.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
            _relay(self.connection, there)

    def log_message(self, *_: object) -> None:
        """Print nothing: the run prints what fails."""


def is_watch(path: str) -> bool:
    """Return True if a request with this path and query is a watch."""
    return parse_qs(urlsplit(path).query).get("watch", [""])[0] in ("true", "1")


def _relay(here: socket.socket, there: socket.socket) -> None:
    to = {here: there, there: here}
    while True:
        pending = isinstance(there, ssl.SSLSocket) and there.pending()
        ready = [there] if pending else select.select([here, there], [], [], _PATIENCE)[0]
        for each in ready:
            data = each.recv(65536)
            if not data:
                return
            to[each].sendall(data)
        if not ready:
            return
