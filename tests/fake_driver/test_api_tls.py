"""The client over TLS: it trusts the given CA alone, and shows its token to nobody else."""

from __future__ import annotations

import datetime
import http.server
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fake_driver.api import Api
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
    """A certificate for 127.0.0.1 that signs itself, with its key in the same file."""
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
    api = Api(url, token_file=tmp_path / "token", ca_file=trusted)
    assert api.get("/x") == {}
    api.close()
    assert tokens == ["Bearer mine"]


def test_any_other_server_is_refused_before_it_sees_the_token(url: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("mine")
    api = Api(url, token_file=tmp_path / "token", ca_file=certificate(tmp_path, "other"))
    with pytest.raises(ApiError, match="certificate verify failed"):
        api.get("/x")
    assert tokens == []
