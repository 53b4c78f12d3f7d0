"""The order in which the sockets are opened and closed."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.errors import ConfigurationError
from fake_driver.kubelet import server
from fake_driver.kubelet.listener import Listener
from fake_driver.roles.node_driver import NodeProcess
from fake_driver.settings import Settings
from testbed.kubelet.stubs import dra_health_v1_pb2, dra_health_v1_pb2_grpc

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi


def test_the_service_answers_before_the_registration_socket_exists(
    start_driver: Callable[..., NodeProcess], settings: Settings, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[tuple[str, bool]] = []
    really = Listener.open

    def opened(listener: Listener) -> None:
        really(listener)
        kubelet.prepare(settings.data / "dra.sock")
        order.append((listener.path.name, (Path(settings.registry) / f"{settings.driver}-reg.sock").exists()))

    monkeypatch.setattr(Listener, "open", opened)
    start_driver(settings)
    assert order == [("dra.sock", False), (f"{settings.driver}-reg.sock", True)]


def test_only_the_owner_can_access_the_sockets(start_driver: Callable[..., NodeProcess], settings: Settings) -> None:
    start_driver(settings)
    for path in (settings.data / "dra.sock", Path(settings.registry) / f"{settings.driver}-reg.sock"):
        assert path.stat().st_mode & 0o777 == 0o600


def test_the_registration_socket_is_removed_first_and_no_file_remains(
    start_driver: Callable[..., NodeProcess], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start_driver(settings)
    registration = Path(settings.registry) / f"{settings.driver}-reg.sock"
    service: Any = process._server._dra_listener
    really, seen = service.close, []

    def close(grace: float) -> Any:
        seen.append(registration.exists())
        return really(grace)

    monkeypatch.setattr(service, "close", close)
    process.stop()
    assert seen == [False]
    assert list(Path(settings.registry).iterdir()) == []
    assert list(settings.data.glob("*.sock")) == []


def test_two_pods_serve_at_the_same_time_and_the_first_one_does_not_affect_the_second(
    start_driver: Callable[..., NodeProcess], settings: Settings, kubelet: Kubelet
) -> None:
    pods = [replace(settings, pod_uid=f"{digit * 8}-1111-4111-8111-111111111111") for digit in "12"]
    first, _ = start_driver(pods[0]), start_driver(pods[1])
    registrations = [Path(settings.registry) / f"{settings.driver}-{pod.pod_uid}-reg.sock" for pod in pods]
    endpoints = {kubelet.register(path).endpoint for path in registrations}
    assert len(endpoints) == 2
    first.stop()
    assert [path.exists() for path in registrations] == [False, True]
    assert kubelet.register(registrations[1]).name == settings.driver


def test_a_socket_that_cannot_be_created_is_named(start_driver: Callable[..., NodeProcess], settings: Settings) -> None:
    (settings.data / "dra.sock").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=r"cannot listen on .*dra\.sock"):
        start_driver(settings)


def test_a_running_call_finishes_when_the_server_stops(
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    kubelet: Kubelet,
    fake_api: FakeApi,
    wait_until: Callable[[Callable[[], bool]], None],
) -> None:
    process, claim, socket = start_driver(settings), fake_api.claim(), settings.data / "dra.sock"
    reading, go_on = threading.Event(), threading.Event()

    def slowly(_method: str, path: str) -> None:
        if path.endswith("/one"):
            reading.set()
            go_on.wait(5)

    fake_api.refuse = slowly
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(kubelet.prepare, socket, claim)
        assert reading.wait(5)
        stopping = pool.submit(process.stop)
        wait_until(lambda: not socket.exists())
        with pytest.raises(FutureTimeoutError):
            stopping.result(1)  # the server must not stop before the call has finished
        go_on.set()
        assert not call.result(5)[claim["uid"]].error
        stopping.result(5)


def test_an_idle_server_stops_immediately_despite_connections_and_health_streams(
    start_driver: Callable[..., NodeProcess], settings: Settings, kubelet: Kubelet
) -> None:
    process = start_driver(settings)
    kubelet.register(Path(settings.registry) / f"{settings.driver}-reg.sock")
    kubelet.prepare(settings.data / "dra.sock")
    stub = dra_health_v1_pb2_grpc.DRAResourceHealthStub(kubelet.channel(settings.data / "dra.sock"))
    stream = stub.NodeWatchResources(dra_health_v1_pb2.NodeWatchResourcesRequest(), timeout=30)
    assert next(stream)
    began = time.monotonic()
    process._server.stop()
    assert time.monotonic() - began < 1.5
    assert not list(stream)


@pytest.fixture
def frequent_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check more often that the sockets exist."""
    monkeypatch.setattr(server, "_CHECK_INTERVAL", 0.02)


@pytest.mark.usefixtures("frequent_checks")
def test_a_removed_registration_socket_is_recreated_and_the_kubelet_can_register_again(
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    kubelet: Kubelet,
    wait_until: Callable[[Callable[[], bool]], None],
) -> None:
    process = start_driver(settings)
    registration = Path(settings.registry) / f"{settings.driver}-reg.sock"
    kubelet.register(registration)
    before = registration.stat().st_ino
    registration.unlink()
    wait_until(lambda: registration.exists() and registration.stat().st_ino != before)
    wait_until(lambda: not process._server.registered.is_set())
    assert registration.stat().st_mode & 0o777 == 0o600
    with contextlib.closing(type(kubelet)()) as later:
        assert later.register(registration).name == settings.driver
    assert "socket-gone" in (settings.data / "journal.jsonl").read_text()


@pytest.mark.usefixtures("frequent_checks")
def test_a_removed_service_socket_is_recreated_and_running_calls_finish(
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    kubelet: Kubelet,
    fake_api: FakeApi,
    wait_until: Callable[[Callable[[], bool]], None],
) -> None:
    start_driver(settings)
    socket, claim = settings.data / "dra.sock", fake_api.claim()
    fake_api.wait_until(lambda: bool(fake_api.slices))
    reading, go_on = threading.Event(), threading.Event()

    def slowly(_method: str, path: str) -> None:
        if "resourceclaims" in path:
            reading.set()
            go_on.wait(5)

    fake_api.refuse = slowly
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(kubelet.prepare, socket, claim)
        assert reading.wait(5)
        shutil.rmtree(settings.data)
        wait_until(socket.exists)
        go_on.set()
        assert not call.result(5)[claim["uid"]].error
    with contextlib.closing(type(kubelet)()) as later:
        assert not later.prepare(socket, claim)[claim["uid"]].error


@pytest.mark.usefixtures("frequent_checks")
def test_a_socket_of_another_process_is_not_replaced(
    start_driver: Callable[..., NodeProcess], settings: Settings, kubelet: Kubelet
) -> None:
    first = start_driver(settings)
    second = start_driver(settings)
    first.stop()
    socket = settings.data / "dra.sock"
    assert kubelet.prepare(socket) == {}
    second.stop()
    assert not socket.exists()
