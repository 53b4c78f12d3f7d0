"""Registration with the kubelet, over real sockets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.roles.node_driver import NodeProcess
from fake_driver.settings import Settings
from testbed.kubelet.stubs import registration_v1_pb2

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet


@pytest.fixture
def socket(start_driver: Callable[..., NodeProcess], settings: Settings) -> Path:
    """Start a driver and return its DRA socket."""
    start_driver(settings)
    return settings.data / "dra.sock"


def journal(settings: Settings) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (settings.data / "journal.jsonl").read_text().splitlines()]


@pytest.fixture
def registration(socket: Path, settings: Settings) -> Path:
    return Path(settings.registry) / f"{settings.driver}-reg.sock"


def test_get_info_has_name_socket_and_services_with_the_newest_first(
    kubelet: Kubelet, registration: Path, settings: Settings
) -> None:
    info = kubelet.register(registration)
    assert (info.type, info.name) == ("DRAPlugin", settings.driver)
    assert info.endpoint == str(settings.data / "dra.sock")
    assert list(info.supported_versions) == [
        "v1.DRAPlugin",
        "v1beta1.DRAPlugin",
        "v1.DRAResourceHealth",
        "v1alpha1.DRAResourceHealth",
    ]


def test_fifty_parallel_registrations_take_less_than_a_second(kubelet: Kubelet, registration: Path) -> None:
    stub = kubelet.registration(registration)
    calls = [stub.GetInfo.future(registration_v1_pb2.InfoRequest(), timeout=1) for _ in range(50)]
    assert {call.result().name for call in calls} == {"gpu.dra-testbed.example"}


def test_a_refused_registration_is_logged_and_can_be_repeated(
    kubelet: Kubelet, start_driver: Callable[..., NodeProcess], settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    process = start_driver(settings)
    registration = Path(settings.registry) / f"{settings.driver}-reg.sock"
    refusal = registration_v1_pb2.RegistrationStatus(plugin_registered=False, error="no handler")
    kubelet.registration(registration).NotifyRegistrationStatus(refusal, timeout=5)
    assert "the kubelet has not registered this driver" in process.not_ready_reasons()
    assert "the kubelet refused to register this driver: no handler" in caplog.text
    kubelet.register(registration)
    assert "the kubelet has not registered this driver" not in process.not_ready_reasons()
