from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fake_driver.api.client import ApiClient, url_path
from fake_driver.errors import ApiError, ConfigurationError

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi

NODE = url_path("api", "v1", "nodes", "worker")
SLICES = url_path("apis", "resource.k8s.io", "v1", "resourceslices")


@pytest.fixture
def connect() -> Iterator[Callable[..., ApiClient]]:
    """Make clients; they are closed after the test."""
    made: list[ApiClient] = []

    def connected(url: str, token: Path | None = None) -> ApiClient:
        made.append(ApiClient(url, token_file=token))
        return made[-1]

    yield connected
    for api in made:
        api.close()


@contextlib.contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """Start a server that sends one of these texts on each connection and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(5)


def ok(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def test_an_object_is_returned_as_a_dict(connect: Callable[..., ApiClient], server: str) -> None:
    assert connect(server).get(NODE)["metadata"]["uid"] == "uid-of-worker"


def test_segments_of_a_path_are_quoted() -> None:
    assert url_path("api", "../x", "a/b?c") == "/api/..%2Fx/a%2Fb%3Fc"


def test_the_token_is_read_again_for_each_request(
    connect: Callable[..., ApiClient], server: str, fake_api: FakeApi, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    api = connect(server, token)
    for secret in ("first\n", "second\n"):
        token.write_text(secret)
        api.get(NODE)
    assert fake_api.tokens == ["Bearer first", "Bearer second"]


def test_an_api_error_has_the_status_and_the_servers_message(connect: Callable[..., ApiClient], server: str) -> None:
    with pytest.raises(ApiError, match=r"404: resourceclaims 'x' not found") as refused:
        connect(server).get(url_path("apis", "resource.k8s.io", "v1", "namespaces", "d", "resourceclaims", "x"))
    assert refused.value.status == 404


def test_deleting_an_object_that_does_not_exist_is_no_error(connect: Callable[..., ApiClient], server: str) -> None:
    connect(server).delete(f"{SLICES}/gone", uid="u")


def test_an_unreachable_server_is_status_zero(connect: Callable[..., ApiClient]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ApiError, match="no answer") as refused:
        connect(f"http://127.0.0.1:{port}").get(NODE)
    assert refused.value.status == 0


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"\xff", b"[" * 100_000])
def test_a_response_that_is_no_object_is_an_api_error(connect: Callable[..., ApiClient], body: bytes) -> None:
    with answering(ok(body)) as url, pytest.raises(ApiError, match="the response is not"):
        connect(url).get(NODE)


def test_a_truncated_response_is_an_api_error(connect: Callable[..., ApiClient]) -> None:
    with (
        answering(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{") as url,
        pytest.raises(ApiError, match="no answer"),
    ):
        connect(url).get(NODE)


@pytest.mark.parametrize("whole", [0, 38], ids=["head", "body"])
@pytest.mark.parametrize("reused", [False, True])
def test_the_timeout_covers_the_whole_response_even_if_bytes_keep_coming(
    connect: Callable[..., ApiClient], whole: int, reused: bool
) -> None:
    answer, tired = ok(b"{%s}" % (b" " * 300)), threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(answer[:whole])
        for byte in answer[whole:]:
            if tired.wait(0.01):
                return
            connection.sendall(bytes([byte]))

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                for _ in range(reused):
                    connection.recv(65536)
                    connection.sendall(ok(b"{}"))
                connection.recv(65536)
                drip(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        api = connect(f"http://127.0.0.1:{listener.getsockname()[1]}")
        for _ in range(reused):
            api.get(NODE)
        with pytest.raises(ApiError, match="no answer: timed out"):
            api.get(NODE, timeout=0.2)
        tired.set()
        thread.join(5)


def test_a_connection_that_was_closed_while_idle_is_replaced(connect: Callable[..., ApiClient]) -> None:
    with answering(ok(b'{"n": 1}'), ok(b'{"n": 2}')) as url:
        api = connect(url)
        assert [api.get(NODE)["n"], api.get(NODE)["n"]] == [1, 2]


def test_a_watch_yields_events_until_the_client_is_closed(
    connect: Callable[..., ApiClient], server: str, fake_api: FakeApi
) -> None:
    api = connect(server)
    events = api.watch(SLICES, {"resourceVersion": "100"}, 60)
    api.create(SLICES, {"metadata": {"name": "s"}, "spec": {}})
    assert next(events)["object"]["metadata"]["name"] == "s"
    closer = threading.Timer(0.05, api.close)
    closer.start()
    assert list(events) == []
    closer.join()
    with pytest.raises(ApiError, match="shutting down"):
        api.watch(SLICES, {"resourceVersion": "100"}, 60).__next__()


def test_a_watch_that_the_server_refuses_is_an_api_error(
    connect: Callable[..., ApiClient], server: str, fake_api: FakeApi
) -> None:
    fake_api.down = True
    with pytest.raises(ApiError, match="503"):
        next(connect(server).watch(SLICES, {"resourceVersion": "100"}, 60))


@pytest.mark.parametrize("url", ["10.0.0.1:443", "ftp://x", "https://", ""])
def test_an_invalid_server_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a URL"):
        ApiClient(url)


def test_a_missing_ca_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"gone\.crt cannot be used"):
        ApiClient("https://127.0.0.1:1", ca_file=tmp_path / "gone.crt")
