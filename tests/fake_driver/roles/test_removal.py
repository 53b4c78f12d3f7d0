from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fake_driver.kubelet.socket_paths import SocketPaths
from fake_driver.roles.node_driver import NodeProcess
from fake_driver.roles.removal import RemovalProcess
from fake_driver.settings import Settings

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi

POD = "11111111-1111-4111-8111-111111111111"
WaitUntil = Callable[[Callable[[], bool]], None]


@pytest.fixture
def remove(settings: Settings) -> Iterator[Callable[..., RemovalProcess]]:
    """Start the removal role."""
    running: list[RemovalProcess] = []

    def started(settings: Settings = settings) -> RemovalProcess:
        process = RemovalProcess(replace(settings, role="removal", hardware="", api_server=""))
        process.start()
        running.append(process)
        return process

    yield started
    for process in running:
        process.stop()


def bound(path: Path) -> socket.socket:
    """Return a listening socket at a path."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    return listener


def test_all_files_of_the_driver_are_removed_and_no_others(
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    fake_api: FakeApi,
    kubelet: Kubelet,
    remove: Callable[..., RemovalProcess],
    wait_until: WaitUntil,
) -> None:
    process, claim = start_driver(settings), fake_api.claim()
    kubelet.prepare(settings.data / "dra.sock", claim)
    kubelet.unprepare(settings.data / "dra.sock", claim)
    process.stop()
    sibling = f"{settings.driver}-2"
    other = [
        Path(settings.plugins) / "other.example" / "state",
        Path(settings.cdi) / "other.example-1.json",
        Path(settings.cdi) / f"{sibling}-{POD}.json",
        Path(settings.registry) / f"{sibling}-reg.sock",
        Path(settings.registry) / f"{sibling}-{POD}-reg.sock",
    ]
    for path in other[:3]:
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    with contextlib.ExitStack() as alive:
        alive.enter_context(bound(other[3]))
        bound(other[4]).close()
        for words in ("", f"-{POD}"):
            bound(Path(settings.registry) / f"{settings.driver}{words}-reg.sock").close()
        assert settings.data.exists()

        removal = remove()
        wait_until(lambda: not removal.not_ready_reasons())
        wait_until(lambda: not removal._thread.is_alive())
    assert not settings.data.exists()
    assert sorted(Path(settings.registry).iterdir()) == sorted(other[3:])
    assert all(path.exists() for path in other)


@pytest.mark.parametrize("length", [40, 63])
def test_stale_sockets_with_short_names_are_removed(
    settings: Settings, folder: Path, remove: Callable[..., RemovalProcess], wait_until: WaitUntil, length: int
) -> None:
    settings = replace(settings, driver="d" * length, registry=str(folder / ("r" * 17)))
    dead = SocketPaths(settings.driver, POD, Path(settings.registry), settings.data)
    assert POD not in str(dead.registration)
    dead.prepare_folders()
    bound(dead.registration).close()

    removal = remove(settings)
    wait_until(lambda: not removal._thread.is_alive())
    assert list(Path(settings.registry).iterdir()) == []


def test_nothing_is_removed_while_the_driver_runs_or_a_claim_is_prepared(
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    fake_api: FakeApi,
    kubelet: Kubelet,
    remove: Callable[..., RemovalProcess],
) -> None:
    process, claim = start_driver(settings), fake_api.claim()
    kubelet.prepare(settings.data / "dra.sock", claim)
    running, held = remove().not_ready_reasons()
    assert running == "the driver is still running: uninstall it first"
    assert held == f"claims are still prepared: delete their pods while the driver runs: {claim['uid']}"
    process.stop()
    assert remove().not_ready_reasons() == [held]
    assert list((settings.data / "claims").glob("*.json"))
    assert list(Path(settings.cdi).glob("*.json"))


def test_a_node_that_never_had_the_driver_is_clean(remove: Callable[..., RemovalProcess]) -> None:
    assert remove().not_ready_reasons() == []
