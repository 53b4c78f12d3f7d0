from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from fake_driver.roles.network_driver import NetworkDriverProcess
from fake_driver.settings import Settings

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi

FABRIC = Path(__file__).parents[3] / "manifests" / "hardware" / "fabric.yaml"


@pytest.fixture
def run(settings: Settings) -> Iterator[Callable[..., NetworkDriverProcess]]:
    """Start the network driver."""
    running: list[NetworkDriverProcess] = []

    def started(**more: str) -> NetworkDriverProcess:
        mine = replace(settings, **{"node": "", "role": "network", "hardware": str(FABRIC), **more})
        process = NetworkDriverProcess(mine)
        process.start()
        running.append(process)
        return process

    yield started
    for process in running:
        process.stop()


def test_the_network_driver_publishes_the_pools_that_belong_to_no_node(
    run: Callable[..., NetworkDriverProcess], fake_api: FakeApi
) -> None:
    process = run(probes="127.0.0.1:0")
    assert process._publisher.published.wait(5)
    assert process.not_ready_reasons() == []
    assert {one["spec"]["pool"]["name"] for one in fake_api.slices.values()} == {"fabric-ports", "accelerator-box"}
    assert not any("nodeName" in one["spec"] for one in fake_api.slices.values())
    assert process._probes
    with urlopen(f"http://127.0.0.1:{process._probes.port}/healthz", timeout=5) as answer:
        assert answer.status == 200


def test_the_network_driver_ignores_kinds_of_other_drivers(
    run: Callable[..., NetworkDriverProcess], fake_api: FakeApi
) -> None:
    run(kinds="port")
    fake_api.wait_until(lambda: len(fake_api.slices) == 1)


def test_the_network_driver_reports_why_it_is_not_ready_or_alive(
    run: Callable[..., NetworkDriverProcess], fake_api: FakeApi
) -> None:
    fake_api.gate.clear()
    process = run()
    assert process.not_ready_reasons() == ["the slices are not published"]
    fake_api.gate.set()
    process.stop()
    assert process.not_alive_reasons() == ["the publisher ended", "the attacher ended"]


def test_the_network_driver_attaches_devices(run: Callable[..., NetworkDriverProcess], fake_api: FakeApi) -> None:
    process = run()
    conditions = ["dra-testbed.example/attached"], ["dra-testbed.example/attaching-failed"]
    bound: dict[str, Any] = {"bindingConditions": conditions[0], "bindingFailureConditions": conditions[1]}
    fake_api.claim(devices=("accelerator-0",), pool="accelerator-box", **bound)
    fake_api.wait_until(lambda: bool(fake_api.status()))
    assert [one["type"] for one in fake_api.status()[0]["conditions"]] == ["dra-testbed.example/attached"]
    assert process.not_alive_reasons() == []


def test_without_devices_to_attach_the_network_driver_reads_no_claims(run: Callable[..., NetworkDriverProcess]) -> None:
    process = run(hardware=str(FABRIC.with_name("teaching.yaml")))
    assert process._publisher.published.wait(5)
    assert not process._attacher.is_alive
    assert process.not_alive_reasons() == []
