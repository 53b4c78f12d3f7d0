import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from fake_driver.errors import ConfigurationError
from fake_driver.probes import Probes, _Handler

missing: list[str] = []


@pytest.fixture
def probes() -> Iterator[Probes]:
    served = Probes(("127.0.0.1", 0), {"/readyz": lambda: list(missing), "/healthz": list})
    served.start()
    yield served
    missing.clear()
    served.stop()


def ask(probes: Probes, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{probes.port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_nothing_missing_is_200(probes: Probes) -> None:
    assert ask(probes, "/readyz") == (200, "ok")
    assert ask(probes, "/healthz") == (200, "ok")


def test_what_is_missing_is_said(probes: Probes) -> None:
    missing.extend(["one thing", "another"])
    assert ask(probes, "/readyz") == (503, "one thing\nanother")


def test_any_other_path_is_not_found(probes: Probes) -> None:
    assert ask(probes, "/etc/passwd") == (404, "nothing here but /readyz and /healthz")


def test_a_client_that_says_nothing_does_not_stop_the_probes_for_long(
    probes: Probes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Handler, "timeout", 0.1)
    with socket.create_connection(("127.0.0.1", probes.port)):
        assert ask(probes, "/readyz")[0] == 200


def test_an_address_that_is_taken_is_named(probes: Probes) -> None:
    with pytest.raises(ConfigurationError, match=f"cannot answer probes on 127.0.0.1:{probes.port}"):
        Probes(("127.0.0.1", probes.port), {})


def test_an_empty_host_means_every_address() -> None:
    served = Probes(("", 0), {"/readyz": list})
    served.start()
    assert ask(served, "/readyz") == (200, "ok")
    served.stop()
