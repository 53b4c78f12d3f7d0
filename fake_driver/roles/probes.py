"""Readiness and liveness over HTTP, because that costs a node next to nothing; a probe that starts a Python costs 100 ms of CPU.

/readyz is 200 once the kubelet has registered the driver and all slices are published; until then its text says what is missing.
/healthz is 200 while the parts that must never end still run. Beside them are pages for programs, such as /metrics.
"""

from __future__ import annotations

import contextlib
import http.server
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from fake_driver.errors import ConfigurationError

log = logging.getLogger(__name__)
_MOST, _PATIENCE = 16, 2.0  # requests at once, and seconds for each
# For each path: what is missing, in words; nothing means 200.
Checks = Mapping[str, Callable[[], list[str]]]
# For each path: the type of its content, and the content.
Pages = Mapping[str, tuple[str, Callable[[], str]]]


class ProbeServer:
    """A small HTTP server in a thread of its own."""

    def __init__(self, address: tuple[str, int], checks: Checks, pages: Pages | None = None) -> None:
        handler = type("Handler", (_Handler,), {"checks": checks, "pages": pages or {}})
        try:
            self._server = _Server(address, handler)
        except OSError as taken:
            raise ConfigurationError(f"cannot answer probes on {address[0]}:{address[1]}: {taken}") from taken
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="probes", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    """All addresses of both families where the host is empty. Any pod can reach it, so nobody may keep it from the kubelet.

    Each request has a thread and a deadline. Where there are too many, the oldest go: a probe is answered in a moment.
    """

    request_queue_size = 64

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        self._busy: dict[Any, float] = {}
        self._guard = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in address[0] or _both(address[0]) else socket.AF_INET
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind without the look-up of our own name that the standard class does; a node may have no name service."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own."""
        with self._guard:
            self._busy[request] = time.monotonic()
            surplus = list(self._busy)[:-_MOST]
        self._end(surplus)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """End what has taken too long; the loop that waits for requests asks now and then."""
        with self._guard:
            late = [request for request, began in self._busy.items() if time.monotonic() - began > _PATIENCE]
        self._end(late)

    def shutdown_request(self, request: Any) -> None:
        """It is over."""
        with self._guard:
            self._busy.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - as in the base class
        """A client that went away is no trouble; an error of ours costs one answer."""
        broken = sys.exception()
        if not isinstance(broken, OSError):
            log.error("a probe was not answered", exc_info=broken)

    def _end(self, requests: Iterable[Any]) -> None:
        for request in requests:
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers one probe."""

    checks: ClassVar[Checks] = {}
    pages: ClassVar[Pages] = {}

    def do_GET(self) -> None:
        """200, or 503 with what is missing; or a page."""
        if self.path in self.pages:
            kind, content = self.pages[self.path]
            self._answer(200, content(), kind)
            return
        check = self.checks.get(self.path)
        missing = check() if check else [f"nothing here but {' and '.join(self.checks)}"]
        status = 404 if check is None else 503 if missing else 200
        self._answer(status, "\n".join(missing) or "ok", "text/plain; charset=utf-8")

    def _answer(self, status: int, said: str, kind: str) -> None:
        text = said.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Probes come every second; the log is for what happens."""


def _both(host: str) -> bool:
    return not host and socket.has_dualstack_ipv6()
