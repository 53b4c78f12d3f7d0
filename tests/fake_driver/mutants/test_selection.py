from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.crash_points import CRASH_POINTS
from fake_driver.errors import ConfigurationError
from fake_driver.mutants import selection
from fake_driver.preparing.opaque_configuration import API_VERSION
from fake_driver.roles.node_driver import NodeProcess, read_parts
from fake_driver.settings import Settings

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi

Start = Callable[..., NodeProcess]
DRIVER = "gpu.dra-testbed.example"


def env(settings: Settings) -> set[str]:
    (file,) = Path(settings.cdi).glob("*.json")
    return {value for device in json.loads(file.read_text())["devices"] for value in device["containerEdits"]["env"]}


def prepared(start_driver: Start, settings: Settings, kubelet: Kubelet, fake_api: FakeApi, *words: str) -> str:
    """Prepare gpu-2 with these faults; the name of the device in the answer."""
    start_driver(settings, partial(selection.apply, words))
    claim = fake_api.claim(devices=("gpu-2",))
    (device,) = kubelet.prepare(settings.data / "dra.sock", claim)[claim["uid"]].devices
    return str(device.device_name)


def test_without_a_mutant_a_container_gets_its_own_device(
    start_driver: Start, settings: Settings, kubelet: Kubelet, fake_api: FakeApi
) -> None:
    assert prepared(start_driver, settings, kubelet, fake_api) == "gpu-2"
    assert "GPU_DEVICE_GPU_2=gpu-2" in env(settings)


def test_share_one_device(start_driver: Start, settings: Settings, kubelet: Kubelet, fake_api: FakeApi) -> None:
    assert prepared(start_driver, settings, kubelet, fake_api, "share-one-device") == "gpu-2"
    assert "GPU_DEVICE_GPU_0=gpu-0" in env(settings)


def test_no_env(start_driver: Start, settings: Settings, kubelet: Kubelet, fake_api: FakeApi) -> None:
    prepared(start_driver, settings, kubelet, fake_api, "no-env")
    assert env(settings) == {"FAKE_DRIVER_FAULT=no-env"}


def test_forget_registration_socket(start_driver: Start, settings: Settings, fake_api: FakeApi) -> None:
    process = start_driver(settings, partial(selection.apply, ["forget-registration-socket"]))
    fake_api.wait_until(lambda: bool(fake_api.slices))
    assert list(Path(settings.registry).iterdir()) == []
    assert "the kubelet has not registered this driver" in process.not_ready_reasons()


def test_slices_missing(start_driver: Start, settings: Settings, kubelet: Kubelet, fake_api: FakeApi) -> None:
    process = start_driver(settings, partial(selection.apply, ["slices-missing"]))
    kubelet.register(Path(settings.registry) / f"{settings.driver}-reg.sock")
    assert process.not_ready_reasons() == ["the slices are not published"]
    assert process.not_alive_reasons() == []
    assert fake_api.writes == []


def published(start_driver: Start, settings: Settings, fake_api: FakeApi, word: str) -> list[Any]:
    """The specs of the slices that the driver writes with this fault."""
    start_driver(settings, partial(selection.apply, [word]))
    count = 2 if word == "publish-devices-twice" else 1
    fake_api.wait_until(lambda: len(fake_api.slices) == count)
    return [slice_["spec"] for slice_ in fake_api.slices.values()]


def test_count_one_slice_too_many(start_driver: Start, settings: Settings, fake_api: FakeApi) -> None:
    (spec,) = published(start_driver, settings, fake_api, "count-one-slice-too-many")
    assert spec["pool"]["resourceSliceCount"] == 2


def test_publish_devices_twice(start_driver: Start, settings: Settings, fake_api: FakeApi) -> None:
    one, other = published(start_driver, settings, fake_api, "publish-devices-twice")
    assert one["pool"]["resourceSliceCount"] == other["pool"]["resourceSliceCount"] == 2
    assert one["devices"] == other["devices"]


def refused(kubelet: Kubelet, settings: Settings, claim: Any) -> str:
    return str(kubelet.prepare(settings.data / "dra.sock", claim)[claim["uid"]].error)


@pytest.mark.parametrize("words", [(), ("admin-takes-device",)])
def test_admin_takes_device(
    start_driver: Start, settings: Settings, kubelet: Kubelet, fake_api: FakeApi, words: tuple[str, ...]
) -> None:
    start_driver(settings, partial(selection.apply, words))
    assert not refused(kubelet, settings, fake_api.claim("user"))
    assert bool(refused(kubelet, settings, fake_api.claim("admin", adminAccess=True))) is bool(words)


def config(env: str, source: str, strategy: str, *requests: str) -> Any:
    parameters = {"apiVersion": API_VERSION, "kind": "GpuConfig", "env": {"a": env}, "sharing": {"strategy": strategy}}
    return {"source": source, "requests": list(requests), "opaque": {"driver": DRIVER, "parameters": parameters}}


CONFIGS = (
    config("1", "FromClass", "TimeSlicing", "gpu"),
    config("2", "FromClaim", "SpacePartitioning"),
    config("3", "FromClaim", "SpacePartitioning", "other"),
)


@pytest.mark.parametrize(
    ("word", "variables"),
    [
        ("", {"admin_a=1", "user_a=2", "GPU_DEVICE_GPU_0_SHARING_STRATEGY=SpacePartitioning"}),
        ("ignores-config-order", {"admin_a=1", "user_a=2", "GPU_DEVICE_GPU_0_SHARING_STRATEGY=TimeSlicing"}),
        ("ignores-config-scope", {"admin_a=1", "user_a=3", "GPU_DEVICE_GPU_0_SHARING_STRATEGY=SpacePartitioning"}),
        ("ignores-class-config", {"user_a=2", "GPU_DEVICE_GPU_0_SHARING_STRATEGY=SpacePartitioning"}),
    ],
)
def test_ignored_configuration(
    start_driver: Start, settings: Settings, kubelet: Kubelet, fake_api: FakeApi, word: str, variables: set[str]
) -> None:
    start_driver(settings, partial(selection.apply, [word] if word else []))
    assert not refused(kubelet, settings, fake_api.claim(config=CONFIGS))
    assert {one for one in env(settings) if one.startswith(("user_", "admin_")) or "STRATEGY" in one} == variables


def test_status_never_written(start_driver: Start, settings: Settings, kubelet: Kubelet, fake_api: FakeApi) -> None:
    process = start_driver(settings, partial(selection.apply, ["status-never-written"]))
    assert not refused(kubelet, settings, fake_api.claim())
    process.stop()
    assert fake_api.applied == []


@pytest.mark.parametrize(("word", "index"), [("", 1), ("status-of-another-device", 0)])
def test_status_of_another_device(
    start_driver: Start, settings: Settings, kubelet: Kubelet, fake_api: FakeApi, word: str, index: int
) -> None:
    start_driver(settings, partial(selection.apply, [word] if word else []))
    assert not refused(kubelet, settings, fake_api.claim(devices=("gpu-1",)))
    fake_api.wait_until(lambda: bool(fake_api.status()))
    (entry,) = fake_api.status()
    assert (entry["device"], entry["data"]["index"]) == ("gpu-1", index)


@pytest.mark.parametrize(("word", "named"), [("", False), ("status-message-of-another-device", True)])
def test_status_message_of_another_device(
    start_driver: Start, settings: Settings, kubelet: Kubelet, fake_api: FakeApi, word: str, named: bool
) -> None:
    process = start_driver(settings, partial(selection.apply, [word] if word else []))
    assert not refused(kubelet, settings, fake_api.claim(devices=("gpu-1",)))
    fake_api.wait_until(lambda: bool(fake_api.status()))
    (entry,) = fake_api.status()
    other, right = (str(each.attributes["uuid"]) for each in process._parts.inventory.devices[:2])
    assert entry["data"]["uuid"] == right
    assert (other in entry["conditions"][0]["message"]) is named


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_a_crash_kills_the_process_once_at_its_point(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    ends: list[int] = []
    monkeypatch.setattr("os._exit", ends.append)
    settings.data.mkdir(parents=True)
    for _ in range(2):
        reached = selection.apply([f"crash-{point}"], read_parts(settings)).at_crash_point
        for here in CRASH_POINTS * 2:
            reached(here)
    assert ends == [137]


def test_an_unknown_mutant_is_refused_with_a_suggestion(settings: Settings) -> None:
    with pytest.raises(ConfigurationError, match="unknown mutant 'no-envs'; did you mean no-env"):
        selection.apply(["no-envs"], read_parts(settings))


def test_every_mutant_has_a_description() -> None:
    assert all(fault.__doc__ for fault in selection.ALL_MUTANTS.values())
