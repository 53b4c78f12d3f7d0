import contextlib
import http.client
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from fake_driver.errors import ConfigurationError
from fake_driver.roles.probes import _MAX_REQUESTS, ProbeServer

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


def test_without_reasons_a_check_is_200(probes: ProbeServer) -> None:
    assert ask(probes, "/readyz") == (200, "ok")
    assert ask(probes, "/healthz") == (200, "ok")


def test_reasons_are_a_503(probes: ProbeServer) -> None:
    missing.extend(["one thing", "another"])
    assert ask(probes, "/readyz") == (503, "one thing\nanother")


def test_any_other_path_is_not_found(probes: ProbeServer) -> None:
    assert ask(probes, "/etc/passwd") == (404, "not found; there are /readyz, /healthz")


def test_slow_clients_do_not_block_the_probes(
    probes: ProbeServer, wait_until: Callable[[Callable[[], bool]], None]
) -> None:
    with contextlib.ExitStack() as slow:
        for _ in range(20):
            client = slow.enter_context(socket.create_connection(("127.0.0.1", probes.port)))
            client.sendall(b"GET /he")
        began = time.monotonic()
        assert ask(probes, "/healthz") == (200, "ok")
        assert time.monotonic() - began < 1
        wait_until(lambda: len(probes._server._busy) <= _MAX_REQUESTS)


def test_a_slow_request_is_closed_even_if_bytes_keep_coming(
    probes: ProbeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fake_driver.roles.probes._TIMEOUT", 0.1)
    late = time.monotonic() + 5
    with socket.create_connection(("127.0.0.1", probes.port)) as client, pytest.raises(ConnectionError):  # noqa: PT012 - a drip is several
        while time.monotonic() < late:
            client.sendall(b"G")
            client.settimeout(0.01)
            with contextlib.suppress(TimeoutError):
                raise ConnectionError(client.recv(1) or "it was ended")


def test_an_error_in_a_check_affects_only_one_request(
    probes: ProbeServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    checks = {"/readyz": lambda: [str(1 // 0)]}
    with monkeypatch.context() as patched:
        patched.setattr(probes._server.RequestHandlerClass, "checks", checks)
        with pytest.raises(http.client.RemoteDisconnected):
            ask(probes, "/readyz")
    assert ask(probes, "/readyz") == (200, "ok")
    assert "ZeroDivisionError" in caplog.text


def test_an_address_in_use_is_named(probes: ProbeServer) -> None:
    with pytest.raises(ConfigurationError, match=f"cannot serve probes on 127.0.0.1:{probes.port}"):
        ProbeServer(("127.0.0.1", probes.port), {})


def test_an_empty_host_means_all_addresses() -> None:
    served = ProbeServer(("", 0), {"/readyz": list})
    served.start()
    assert ask(served, "/readyz") == (200, "ok")
    served.stop()
