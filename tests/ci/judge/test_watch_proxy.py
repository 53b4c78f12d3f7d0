"""The watch proxy between the real client and a server with TLS: requests pass unchanged, events are late or lost, exec is relayed."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from ci.judge.watch_proxy import Upstream, WatchProxy, in_front_of, is_watch, running
from testbed.errors import ApiError
from testbed.kube.client import Kube
from testbed.providers.local.addresses import Addresses
from testbed.providers.local.credentials import write_credentials

CORE = {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True}]}
LATE = 0.6


def event(kind: str, version: int) -> dict[str, Any]:
    return {"type": kind, "object": {"metadata": {"name": "a", "resourceVersion": str(version)}}}


@dataclass
class Server:
    """An API server that requires a client certificate. Its watches have these events, each after a pause, and end after another."""

    kubeconfig: Path
    events: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    end: float = 0.0
    seen: list[Any] = field(default_factory=list)
    refused: bool = False


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    pki = tmp_path / "pki"
    write_credentials(pki, Addresses(200), {})
    fake = Server(pki / "admin.kubeconfig")
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(fake))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
    tls.load_verify_locations(pki / "ca.crt")
    tls.verify_mode = ssl.CERT_REQUIRED
    http.socket = tls.wrap_socket(http.socket, server_side=True)
    content = yaml.safe_load(fake.kubeconfig.read_text())
    content["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{http.server_port}"
    fake.kubeconfig.write_text(json.dumps(content))
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    yield fake
    http.shutdown()
    thread.join()
    http.server_close()


def _handler(fake: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fake.seen.append((self.command, self.path, body.decode(), self.headers))
            if self.headers.get("Upgrade"):
                self.echo()
            elif "watch=true" in self.path and not fake.refused:
                self.stream()
            elif self.path == "/api/v1":
                self.whole(200, CORE)
            else:
                self.whole(403 if fake.refused else 200, {"kind": "Status", "message": "so it is", "metadata": {}})

        do_GET = do_POST = do_PATCH = answer  # noqa: N815 - the names that http.server calls

        def whole(self, status: int, content: Any) -> None:
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def stream(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for pause, each in fake.events:
                self.pause(pause)
                line = json.dumps(each).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.pause(fake.end)
            self.wfile.write(b"0\r\n\r\n")

        def pause(self, seconds: float) -> None:
            threading.Event().wait(seconds)

        def echo(self) -> None:
            self.send_response_only(101)
            self.end_headers()
            self.close_connection = True
            while data := self.connection.recv(100):
                self.connection.sendall(data.upper())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in http.server
            """Print nothing."""

    return Handler


def through(server: Server, **changes: Any) -> WatchProxy:
    return WatchProxy(Upstream.of(yaml.safe_load(server.kubeconfig.read_text())), **changes)


def connected(url: str) -> socket.socket:
    """Return a connection to the server of a URL."""
    return socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))


def watched(server: Server, proxy: WatchProxy) -> list[tuple[str, float]]:
    """Return the types of the events that a client of the proxy gets, each with the seconds since the watch began."""
    with running(proxy) as url, in_front_of(server.kubeconfig, url, proxy.token):
        client = Kube(server.kubeconfig)
        client.resource("v1", "Pod")
        began = time.monotonic()
        found = client.watch("v1", "Pod", "n", seconds=5)
        return [(each["type"], time.monotonic() - began) for each in found]


def test_requests_and_answers_pass_unchanged(server: Server) -> None:
    proxy = through(server)
    with running(proxy) as url, in_front_of(server.kubeconfig, url, proxy.token):
        client = Kube(server.kubeconfig)
        headers = [("Impersonate-Group", "one"), ("Impersonate-Group", "two")]
        answer = client.request("POST", "/things?x=1%2F2", body={"a": "ü"}, headers=headers)
    assert answer["message"] == "so it is"
    method, path, body, sent = server.seen[-1]
    assert (method, path, json.loads(body)) == ("POST", "/things?x=1%2F2", {"a": "ü"})
    assert sent.get_all("Impersonate-Group") == ["one", "two"]
    assert "Authorization" not in sent
    assert sent.get_all("Content-Length") == [str(len(body.encode()))]


def test_a_refused_request_is_refused(server: Server) -> None:
    server.refused = True
    proxy = through(server)
    with running(proxy) as url, in_front_of(server.kubeconfig, url, proxy.token), pytest.raises(ApiError) as refused:
        Kube(server.kubeconfig).request("GET", "/things")
    assert (refused.value.status, refused.value.message) == (403, "so it is")


def test_events_are_late_but_in_order(server: Server) -> None:
    server.events, server.end = [(0, event("ADDED", 1)), (0, event("MODIFIED", 2))], 2 * LATE
    proxy = through(server, delay=LATE)
    seen = watched(server, proxy)
    assert [kind for kind, _ in seen] == ["ADDED", "MODIFIED"]
    assert all(LATE <= when < 2 * LATE for _, when in seen)
    assert proxy.changed == 2


def test_an_event_that_comes_after_the_end_of_its_watch_is_lost(server: Server) -> None:
    server.events, server.end = [(0, event("ADDED", 1)), (LATE, event("MODIFIED", 2))], LATE / 2
    proxy = through(server, delay=LATE)
    assert [kind for kind, _ in watched(server, proxy)] == ["ADDED"]
    assert proxy.changed == 2


def test_events_of_some_types_are_dropped(server: Server) -> None:
    server.events = [(0, event("ADDED", 1)), (0, event("MODIFIED", 2)), (0, event("DELETED", 3))]
    proxy = through(server, drop=("MODIFIED",))
    assert [kind for kind, _ in watched(server, proxy)] == ["ADDED", "DELETED"]
    assert proxy.changed == 1


def test_a_proxy_without_a_fault_changes_nothing(server: Server) -> None:
    server.events = [(0, event("ADDED", 1)), (0, event("DELETED", 2))]
    proxy = through(server)
    assert [kind for kind, _ in watched(server, proxy)] == ["ADDED", "DELETED"]
    assert proxy.changed == 0


def test_a_connection_that_changes_its_protocol_is_relayed(server: Server) -> None:
    proxy = through(server)
    head = f"Host: x\r\nAuthorization: Bearer {proxy.token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with running(proxy) as url, connected(url) as here:
        here.sendall(f"GET /exec?command=ls HTTP/1.1\r\n{head}".encode())
        assert here.recv(1000).startswith(b"HTTP/1.1 101 ")
        here.sendall(b"hello")
        assert here.recv(1000) == b"HELLO"
    assert server.seen[-1][1] == "/exec?command=ls"
    assert server.seen[-1][3]["Upgrade"] == "websocket"
    assert "Authorization" not in server.seen[-1][3]


@pytest.mark.parametrize("header", ["", "Authorization: Bearer guessed\r\n"])
def test_a_caller_without_the_token_is_refused(server: Server, header: str) -> None:
    with running(through(server)) as url, connected(url) as here:
        here.sendall(f"GET /things HTTP/1.1\r\nHost: x\r\n{header}\r\n".encode())
        assert here.recv(1000).startswith(b"HTTP/1.1 401 ")
    assert not server.seen


def test_a_server_that_is_gone_looks_like_a_lost_connection(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    kubeconfig = tmp_path / "kubeconfig"
    write_credentials(tmp_path, Addresses(200), {})
    kubeconfig = tmp_path / "admin.kubeconfig"
    proxy = WatchProxy(Upstream("127.0.0.1", port, None))
    with running(proxy) as url, in_front_of(kubeconfig, url, proxy.token):
        with pytest.raises(ApiError) as lost:
            Kube(kubeconfig).request("GET", "/version")
        assert lost.value.status == 0


def test_the_kubeconfig_is_restored_and_never_has_credentials_for_the_proxy(tmp_path: Path) -> None:
    write_credentials(tmp_path, Addresses(200), {})
    file = tmp_path / "admin.kubeconfig"
    before = file.read_text()
    with in_front_of(file, "http://127.0.0.1:1", "token"):
        assert "client-key" not in file.read_text()
        assert file.stat().st_mode & 0o077 == 0
    assert file.read_text() == before
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("path", "watch"),
    [("/api/v1/pods?watch=true&x=1", True), ("/api/v1/pods?watch=1", True), ("/api/v1/pods?watch=false", False)],
)
def test_watches_are_recognized(path: str, watch: bool) -> None:
    assert is_watch(path) is watch
