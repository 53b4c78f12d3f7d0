"""The client over TLS: it trusts only the given CA and sends its token to no other server."""

from __future__ import annotations

import contextlib
import datetime
import http.server
import ipaddress
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fake_driver.api.client import ApiClient
from fake_driver.errors import ApiError

tokens: list[str | None] = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        tokens.append(self.headers.get("Authorization"))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        pass


def certificate(folder: Path, name: str) -> Path:
    """Write a self-signed certificate for 127.0.0.1, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / f"{name}.pem").write_bytes(signed.public_bytes(pem) + private)
    return folder / f"{name}.pem"


@pytest.fixture
def trusted(tmp_path: Path) -> Path:
    return certificate(tmp_path, "trusted")


class HangingUp:
    """A server that answers once on each connection and closes it, in one of several ways, while it is idle."""

    def __init__(self, certified: Path, way: Callable[[ssl.SSLSocket], object]) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certified)
        self._way, self._read, self._hung_up = way, threading.Semaphore(0), threading.Semaphore(0)

    def serve(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the listener is closed at the end
            while True:
                self._answer(listener.accept()[0])
                self._hung_up.release()

    def hang_up(self) -> None:
        """Close the connection after the last response was read."""
        self._read.release()
        assert self._hung_up.acquire(timeout=5)

    def _answer(self, connection: socket.socket) -> None:
        with self._context.wrap_socket(connection, server_side=True) as tls:
            tls.recv(65536)
            tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            assert self._read.acquire(timeout=5)
            tls.settimeout(0)
            with contextlib.suppress(OSError):
                self._way(tls)


def _reset(tls: ssl.SSLSocket) -> None:
    tls.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.fixture
def url(trusted: Path) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted)
    tokens.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        listener.socket = context.wrap_socket(listener.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        yield f"https://127.0.0.1:{listener.server_address[1]}"
        listener.shutdown()
        thread.join()


def test_the_server_of_the_given_ca_gets_the_token(url: str, trusted: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("mine")
    api = ApiClient(url, token_file=tmp_path / "token", ca_file=trusted)
    assert api.get("/x") == {}
    api.close()
    assert tokens == ["Bearer mine"]


def test_a_server_of_another_ca_is_refused_before_it_gets_the_token(url: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("mine")
    api = ApiClient(url, token_file=tmp_path / "token", ca_file=certificate(tmp_path, "other"))
    with pytest.raises(ApiError, match="certificate verify failed"):
        api.get("/x")
    assert tokens == []


@pytest.mark.parametrize(
    "way",
    [ssl.SSLSocket.unwrap, lambda _: None, _reset],
    ids=["with-a-word", "without", "reset"],
)
def test_a_connection_that_was_closed_while_idle_is_replaced(
    trusted: Path, way: Callable[[ssl.SSLSocket], object]
) -> None:
    server = HangingUp(trusted, way)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=server.serve, args=(listener,), daemon=True).start()
        api = ApiClient(f"https://127.0.0.1:{listener.getsockname()[1]}", ca_file=trusted)
        for _ in range(3):
            assert api.get("/x") == {}
            server.hang_up()
        api.close()
        listener.shutdown(socket.SHUT_RDWR)
