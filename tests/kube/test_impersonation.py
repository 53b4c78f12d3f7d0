"""A kubeconfig user that impersonates another one: every kind of request has the headers."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import UsageError
from testbed.kube import impersonation
from testbed.kube.client import Kube
from tests.fakes.api_server import ApiServer

USER = {
    "token": "of-the-administrator",
    "as": "narrow",
    "as-uid": "7",
    "as-groups": ["testers", "judges"],
    "as-user-extra": {"example.org/Why%": ["a", "b"]},
}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}
PODS = {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True}]}


@dataclass
class Server:
    """A server that accepts everything, websockets too, and records the headers."""

    url: str = ""
    seen: dict[str, Message] = field(default_factory=dict)


@contextlib.contextmanager
def _running() -> Iterator[Server]:
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kind = "watch" if "watch=" in self.path else "exec" if "/exec?" in self.path else self.command
            server.seen[kind] = self.headers
            self.websocket() if kind == "exec" else self.whole(kind)

        def whole(self, kind: str) -> None:
            event = {"type": "ADDED", "object": POD}
            content = PODS if self.path == "/api/v1" else event if kind == "watch" else {**POD, "items": []}
            text = json.dumps(content).encode() + b"\n"
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def websocket(self) -> None:
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            accept = base64.b64encode(hashlib.sha1(key.encode(), usedforsecurity=False).digest())
            self.send_header("Sec-WebSocket-Accept", accept.decode())
            self.send_header("Sec-WebSocket-Protocol", "v4.channel.k8s.io")
            self.end_headers()
            for message in (b"\x01said\n", b'\x03{"status":"Success"}'):
                self.wfile.write(b"\x82%c%b" % (len(message), message))
            self.wfile.write(b"\x88\x00")
            self.close_connection = True

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - the names that http.server calls

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in http.server
            """Quiet."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    yield server
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    with _running() as made:
        yield made


def _kube(server: Server, folder: Path, **user: Any) -> Kube:
    return Kube(ApiServer(server.url).kubeconfig(folder, **user))


_WAYS: dict[str, Callable[[Kube], Any]] = {
    "GET": lambda kube: kube.get("v1", "Pod", "p", "n"),
    "POST": lambda kube: kube.create(POD),
    "PATCH": lambda kube: kube.apply(POD),
    "PUT": lambda kube: kube.update(POD),
    "DELETE": lambda kube: kube.delete(POD),
    "watch": lambda kube: list(kube.watch("v1", "Pod", "n", seconds=1)),
    "exec": lambda kube: (kube.exec("n", "p", ["true"]), kube.exec_unchecked("n", "p", ["true"])),
}


@pytest.mark.parametrize("way", _WAYS)
def test_every_kind_of_request_has_impersonation_headers(server: Server, tmp_path: Path, way: str) -> None:
    _WAYS[way](_kube(server, tmp_path, **USER))
    sent = server.seen[way]
    assert sent["Authorization"] == "Bearer of-the-administrator"
    assert (sent["Impersonate-User"], sent["Impersonate-Uid"]) == ("narrow", "7")
    assert sent.get_all("Impersonate-Group") == ["testers", "judges"]
    assert sent.get_all("Impersonate-Extra-example.org%2FWhy%25") == ["a", "b"]


@pytest.mark.parametrize("way", _WAYS)
def test_a_user_without_impersonation_sends_no_headers(server: Server, tmp_path: Path, way: str) -> None:
    _WAYS[way](_kube(server, tmp_path, token="t"))
    assert [name for name in server.seen[way] if name.startswith("Impersonate")] == []


def test_a_programs_output_is_received_over_the_websocket(server: Server, tmp_path: Path) -> None:
    assert _kube(server, tmp_path, **USER).exec("n", "p", ["true"]) == "said\n"


def test_a_second_impersonation_is_refused(server: Server, tmp_path: Path) -> None:
    kube = _kube(server, tmp_path, **USER)
    with pytest.raises(UsageError, match="impersonates narrow"):
        kube.request("GET", "/version", headers=[("Impersonate-User", "another")])
    assert server.seen == {}


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"as": 0}, "as of its user must be a string"),
        ({"as": "a\r\nX: y"}, "as of its user contains a character"),
        ({"as": "jürgen"}, "as of its user contains a character"),
        ({"as": "a", "as-groups": "b"}, "as-groups of its user must be a list"),
        ({"as": "a", "as-groups": [1]}, "as-groups of its user must be a string"),
        ({"as": "a", "as-user-extra": ["b"]}, "as-user-extra of its user must be a mapping of lists"),
        ({"as": "a", "as-user-extra": {"b": "c"}}, "as-user-extra of its user must be a list"),
        ({"as-groups": ["a"]}, "has as-groups without as"),
        ({"as": "", "as-uid": "7"}, "has as-uid without as"),
    ],
)
def test_invalid_impersonation_is_refused(user: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        impersonation.headers(user, "file")
