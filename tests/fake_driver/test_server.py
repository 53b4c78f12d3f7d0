"""The order in which the sockets come and go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from fake_driver import server
from fake_driver.errors import ConfigurationError
from fake_driver.settings import Settings
from fake_driver.wiring import Process

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet


def test_the_service_answers_before_the_registration_socket_is_there(
    start: Callable[..., Process], settings: Settings, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[tuple[str, bool]] = []
    really = server._listen

    def listen(grpc_server: grpc.Server, path: Path) -> None:
        really(grpc_server, path)
        kubelet.prepare(settings.data / "dra.sock")
        order.append((path.name, (Path(settings.registry) / f"{settings.driver}-reg.sock").exists()))

    monkeypatch.setattr(server, "_listen", listen)
    start(settings)
    assert order == [("dra.sock", False), (f"{settings.driver}-reg.sock", True)]


def test_sockets_are_for_their_owner_alone(start: Callable[..., Process], settings: Settings) -> None:
    start(settings)
    for path in (settings.data / "dra.sock", Path(settings.registry) / f"{settings.driver}-reg.sock"):
        assert path.stat().st_mode & 0o777 == 0o600


def test_the_registration_socket_goes_first_and_nothing_stays(
    start: Callable[..., Process], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start(settings)
    registration = Path(settings.registry) / f"{settings.driver}-reg.sock"
    service: Any = process._server._service
    really, seen = service.stop, []

    def stop(grace: float) -> Any:
        seen.append(registration.exists())
        return really(grace)

    monkeypatch.setattr(service, "stop", stop)
    process.stop()
    assert seen == [False]
    assert list(Path(settings.registry).iterdir()) == []
    assert list(settings.data.glob("*.sock")) == []


def test_two_pods_serve_side_by_side_and_the_first_leaves_the_second_alone(
    start: Callable[..., Process], settings: Settings, kubelet: Kubelet
) -> None:
    pods = [replace(settings, pod_uid=f"{digit * 8}-1111-4111-8111-111111111111") for digit in "12"]
    first, _ = start(pods[0]), start(pods[1])
    registrations = [Path(settings.registry) / f"{settings.driver}-{pod.pod_uid}-reg.sock" for pod in pods]
    endpoints = {kubelet.register(path).endpoint for path in registrations}
    assert len(endpoints) == 2
    first.stop()
    assert [path.exists() for path in registrations] == [False, True]
    assert kubelet.register(registrations[1]).name == settings.driver


def test_a_socket_that_cannot_be_made_is_named(start: Callable[..., Process], settings: Settings) -> None:
    (settings.data / "dra.sock").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=r"cannot listen on .*dra\.sock"):
        start(settings)
