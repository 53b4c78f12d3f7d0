"""The health stream over a real socket."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from fake_driver.devices.health import HEALTHY, UNHEALTHY, Health
from fake_driver.kubelet import health_service
from fake_driver.roles.node_driver import NodeProcess
from fake_driver.settings import Settings
from testbed.kubelet.stubs import (
    dra_health_v1_pb2,
    dra_health_v1_pb2_grpc,
    dra_health_v1alpha1_pb2,
    dra_health_v1alpha1_pb2_grpc,
)

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet

GPU = ("worker", "gpu-1")


VERSIONS = pytest.mark.parametrize(
    ("messages", "stubs"),
    [(dra_health_v1_pb2, dra_health_v1_pb2_grpc), (dra_health_v1alpha1_pb2, dra_health_v1alpha1_pb2_grpc)],
)


def watch(kubelet: Kubelet, settings: Settings, messages: ModuleType, stubs: ModuleType) -> Any:
    stub = stubs.DRAResourceHealthStub(kubelet.channel(settings.data / "dra.sock"))
    return stub.NodeWatchResources(messages.NodeWatchResourcesRequest(), timeout=10)


def seen(response: Any, messages: ModuleType) -> dict[tuple[str, str], tuple[str, str]]:
    return {
        (one.device.pool_name, one.device.device_name): (messages.HealthStatus.Name(one.health), one.message)
        for one in response.devices
    }


@VERSIONS
def test_the_stream_has_all_devices_immediately_and_then_each_change(
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    kubelet: Kubelet,
    messages: ModuleType,
    stubs: ModuleType,
) -> None:
    process = start_driver(settings)
    stream = watch(kubelet, settings, messages, stubs)
    first = next(stream)
    assert seen(first, messages) == {("worker", f"gpu-{index}"): (HEALTHY, "") for index in range(4)}
    assert {one.health_check_timeout_seconds for one in first.devices} == {30}
    assert min(one.last_updated_time for one in first.devices) > 1_700_000_000
    process.health_store.set(GPU, Health(UNHEALTHY, "fell off the bus"))
    assert seen(next(stream), messages)[GPU] == (UNHEALTHY, "fell off the bus")
    stream.cancel()


@VERSIONS
def test_health_is_repeated_before_it_is_stale(
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    kubelet: Kubelet,
    monkeypatch: pytest.MonkeyPatch,
    messages: ModuleType,
    stubs: ModuleType,
) -> None:
    assert health_service._REPEAT < health_service._TIMEOUT / 2
    monkeypatch.setattr(health_service, "_REPEAT", 0.01)
    start_driver(settings)
    stream: Iterator[Any] = watch(kubelet, settings, messages, stubs)
    assert seen(next(stream), messages) == seen(next(stream), messages)


def test_a_cancelled_stream_makes_room_for_another_one(
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    kubelet: Kubelet,
    wait_until: Callable[[Callable[[], bool]], None],
) -> None:
    process = start_driver(settings)
    service = process._server._health_services[0]
    streams = [watch(kubelet, settings, dra_health_v1_pb2, dra_health_v1_pb2_grpc) for _ in range(4)]
    assert all(next(stream).devices for stream in streams)
    with pytest.raises(grpc.RpcError, match="4 health streams are open already"):
        next(watch(kubelet, settings, dra_health_v1_pb2, dra_health_v1_pb2_grpc))
    for stream in streams:
        stream.cancel()
    wait_until(lambda: service._streams._value == 4)
    assert next(watch(kubelet, settings, dra_health_v1_pb2, dra_health_v1_pb2_grpc)).devices


def test_a_stream_does_not_delay_stopping(
    start_driver: Callable[..., NodeProcess], settings: Settings, kubelet: Kubelet
) -> None:
    process = start_driver(settings)
    stream = watch(kubelet, settings, dra_health_v1_pb2, dra_health_v1_pb2_grpc)
    next(stream)
    ending = threading.Thread(target=process.stop)
    ending.start()
    assert list(stream) == []
    ending.join(5)
    assert not ending.is_alive()
