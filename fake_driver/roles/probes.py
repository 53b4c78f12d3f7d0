"""Readiness and liveness probes over HTTP; exec probes would cost 100 ms of CPU each time to start Python.

/readyz returns 200 when the kubelet has registered the driver and all slices are published; before that, the reasons why not.
/healthz returns 200 while all threads that must not end are running. The server also serves other pages, for example /metrics.
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
_MAX_REQUESTS, _TIMEOUT = 16, 2.0  # requests at the same time, and seconds for each
# For each path, a function that returns the reasons for a 503; no reasons mean 200.
Checks = Mapping[str, Callable[[], list[str]]]
# For each path, the content type and a function that returns the content.
Pages = Mapping[str, tuple[str, Callable[[], str]]]


class ProbeServer:
    """A small HTTP server in its own thread."""

    def __init__(self, address: tuple[str, int], checks: Checks, pages: Pages | None = None) -> None:
        handler = type("Handler", (_Handler,), {"checks": checks, "pages": pages or {}})
        try:
            self._server = _Server(address, handler)
        except OSError as error:
            raise ConfigurationError(f"cannot serve probes on {address[0]}:{address[1]}: {error}") from error
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="probes", daemon=True)

    def start(self) -> None:
        """Start to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to serve."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    """Listens on all IPv4 and IPv6 addresses if the host is empty. Any pod can connect, but must not block the kubelet's probes.

    Each request has its own thread and a deadline. If there are too many, the oldest ones are closed, because a probe takes only a moment.
    """

    request_queue_size = 64

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        self._busy: dict[Any, float] = {}
        self._lock = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in address[0] or _is_dual_stack(address[0]) else socket.AF_INET
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind without looking up the host name as the base class does; a node may have no DNS."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a request in its own thread."""
        with self._lock:
            self._busy[request] = time.monotonic()
            surplus = list(self._busy)[:-_MAX_REQUESTS]
        self._close(surplus)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Close requests that have taken too long. The serving loop calls this periodically."""
        with self._lock:
            late = [request for request, began in self._busy.items() if time.monotonic() - began > _TIMEOUT]
        self._close(late)

    def shutdown_request(self, request: Any) -> None:
        """Forget a request that was handled."""
        with self._lock:
            self._busy.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - as in the base class
        """Log an internal error; ignore clients that have disconnected."""
        error = sys.exception()
        if not isinstance(error, OSError):
            log.error("internal error while handling a probe", exc_info=error)

    def _close(self, requests: Iterable[Any]) -> None:
        for request in requests:
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)


class _Handler(http.server.BaseHTTPRequestHandler):
    """Handles one request."""

    checks: ClassVar[Checks] = {}
    pages: ClassVar[Pages] = {}

    def do_GET(self) -> None:
        """Return a page, or the result of a check: 200, or 503 with the reasons."""
        if self.path in self.pages:
            content_type, content = self.pages[self.path]
            self._respond(200, content(), content_type)
            return
        check = self.checks.get(self.path)
        reasons = check() if check else [f"not found; there are {', '.join([*self.checks, *self.pages])}"]
        status = 404 if check is None else 503 if reasons else 200
        self._respond(status, "\n".join(reasons) or "ok", "text/plain; charset=utf-8")

    def _respond(self, status: int, content: str, content_type: str) -> None:
        body = content.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Log nothing, because probes arrive every second."""


def _is_dual_stack(host: str) -> bool:
    return not host and socket.has_dualstack_ipv6()
