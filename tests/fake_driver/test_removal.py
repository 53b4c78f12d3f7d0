from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fake_driver.removal import RemovalProcess
from fake_driver.settings import Settings
from fake_driver.wiring import Process

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi

Until = Callable[[Callable[[], bool]], None]


@pytest.fixture
def remove(settings: Settings) -> Iterator[Callable[[], RemovalProcess]]:
    """Start the role that removes."""
    running: list[RemovalProcess] = []

    def started() -> RemovalProcess:
        process = RemovalProcess(replace(settings, role="removal", hardware="", api_server=""))
        process.start()
        running.append(process)
        return process

    yield started
    for process in running:
        process.stop()


def test_after_the_driver_nothing_of_it_is_left_and_all_else_is(
    start: Callable[..., Process],
    settings: Settings,
    fake_api: FakeApi,
    kubelet: Kubelet,
    remove: Callable[[], RemovalProcess],
    until: Until,
) -> None:
    process, claim = start(settings), fake_api.claim()
    kubelet.prepare(settings.data / "dra.sock", claim)
    kubelet.unprepare(settings.data / "dra.sock", claim)
    process.stop()
    other = [Path(settings.plugins) / "other.example" / "state", Path(settings.cdi) / "other.example-1.json"]
    for path in other:
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    dead = Path(settings.registry) / f"{settings.driver}-reg.sock"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(dead))
    assert settings.data.exists()

    removal = remove()
    until(lambda: not removal.missing())
    until(lambda: not removal._thread.is_alive())
    assert not settings.data.exists()
    assert list(Path(settings.registry).iterdir()) == []
    assert all(path.exists() for path in other)


def test_nothing_goes_while_the_driver_runs_or_a_claim_is_prepared(
    start: Callable[..., Process],
    settings: Settings,
    fake_api: FakeApi,
    kubelet: Kubelet,
    remove: Callable[[], RemovalProcess],
) -> None:
    process, claim = start(settings), fake_api.claim()
    kubelet.prepare(settings.data / "dra.sock", claim)
    running, held = remove().missing()
    assert running == "the driver still runs: uninstall it first"
    assert held == f"claims are prepared, end their pods while the driver runs: {claim['uid']}"
    process.stop()
    assert remove().missing() == [held]
    assert list((settings.data / "claims").glob("*.json"))
    assert list(Path(settings.cdi).glob("*.json"))


def test_a_node_that_never_had_the_driver_is_clean(remove: Callable[[], RemovalProcess]) -> None:
    assert remove().missing() == []
