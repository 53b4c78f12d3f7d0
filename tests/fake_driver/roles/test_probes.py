import contextlib
import http.client
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from fake_driver.errors import ConfigurationError
from fake_driver.roles.probes import _MOST, ProbeServer

missing: list[str] = []


@pytest.fixture
def probes() -> Iterator[ProbeServer]:
    served = ProbeServer(("127.0.0.1", 0), {"/readyz": lambda: list(missing), "/healthz": list})
    served.start()
    yield served
    missing.clear()
    served.stop()


def ask(probes: ProbeServer, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{probes.port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_nothing_missing_is_200(probes: ProbeServer) -> None:
    assert ask(probes, "/readyz") == (200, "ok")
    assert ask(probes, "/healthz") == (200, "ok")


def test_what_is_missing_is_said(probes: ProbeServer) -> None:
    missing.extend(["one thing", "another"])
    assert ask(probes, "/readyz") == (503, "one thing\nanother")


def test_any_other_path_is_not_found(probes: ProbeServer) -> None:
    assert ask(probes, "/etc/passwd") == (404, "nothing here but /readyz and /healthz")


def test_clients_that_say_nothing_or_drip_do_not_stop_the_probes(
    probes: ProbeServer, until: Callable[[Callable[[], bool]], None]
) -> None:
    with contextlib.ExitStack() as slow:
        for _ in range(20):
            client = slow.enter_context(socket.create_connection(("127.0.0.1", probes.port)))
            client.sendall(b"GET /he")
        began = time.monotonic()
        assert ask(probes, "/healthz") == (200, "ok")
        assert time.monotonic() - began < 1
        until(lambda: len(probes._server._busy) <= _MOST)


def test_a_request_that_takes_too_long_is_ended_however_often_a_byte_of_it_comes(
    probes: ProbeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fake_driver.roles.probes._PATIENCE", 0.1)
    late = time.monotonic() + 5
    with socket.create_connection(("127.0.0.1", probes.port)) as client, pytest.raises(ConnectionError):  # noqa: PT012 - a drip is several
        while time.monotonic() < late:
            client.sendall(b"G")
            client.settimeout(0.01)
            with contextlib.suppress(TimeoutError):
                raise ConnectionError(client.recv(1) or "it was ended")


def test_a_check_that_breaks_costs_one_answer(
    probes: ProbeServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    checks = {"/readyz": lambda: [str(1 // 0)]}
    with monkeypatch.context() as patched:
        patched.setattr(probes._server.RequestHandlerClass, "checks", checks)
        with pytest.raises(http.client.RemoteDisconnected):
            ask(probes, "/readyz")
    assert ask(probes, "/readyz") == (200, "ok")
    assert "ZeroDivisionError" in caplog.text


def test_an_address_that_is_taken_is_named(probes: ProbeServer) -> None:
    with pytest.raises(ConfigurationError, match=f"cannot answer probes on 127.0.0.1:{probes.port}"):
        ProbeServer(("127.0.0.1", probes.port), {})


def test_an_empty_host_means_every_address() -> None:
    served = ProbeServer(("", 0), {"/readyz": list})
    served.start()
    assert ask(served, "/readyz") == (200, "ok")
    served.stop()
