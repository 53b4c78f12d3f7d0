from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from fake_driver.devices.health import UNKNOWN
from fake_driver.mutants.selection import ALL_MUTANTS
from fake_driver.roles.node_driver import NodeProcess
from fake_driver.settings import Settings
from fake_driver.strict_decoding import Section

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi


def test_ready_means_registered_and_published(
    start_driver: Callable[..., NodeProcess], settings: Settings, kubelet: Kubelet, fake_api: FakeApi
) -> None:
    fake_api.gate.clear()
    process = start_driver(replace(settings, probes="127.0.0.1:0"))
    assert process.not_ready_reasons() == ["the kubelet has not registered this driver", "the slices are not published"]
    kubelet.register(Path(settings.registry) / f"{settings.driver}-reg.sock")
    assert process.not_ready_reasons() == ["the slices are not published"]
    fake_api.gate.set()
    assert process._publisher.published.wait(5)
    assert process.not_ready_reasons() == []
    assert process._probes
    with urlopen(f"http://127.0.0.1:{process._probes.port}/readyz", timeout=5) as answer:
        assert answer.status == 200


def test_the_liveness_probe_fails_if_the_publisher_has_ended(
    start_driver: Callable[..., NodeProcess], settings: Settings
) -> None:
    process = start_driver(settings)
    assert process.not_alive_reasons() == []
    process._api.close()
    process._publisher.stop()
    assert process.not_alive_reasons() == ["the publisher ended"]


def test_the_token_is_only_sent_over_tls(
    start_driver: Callable[..., NodeProcess], settings: Settings, fake_api: FakeApi, folder: Path
) -> None:
    (folder / "token").write_text("secret")
    start_driver(replace(settings, token_file=str(folder / "token")))
    fake_api.wait_until(lambda: bool(fake_api.slices))
    assert set(fake_api.tokens) == {""}


def test_two_drivers_share_the_hardware_of_a_node(
    start_driver: Callable[..., NodeProcess], settings: Settings, kubelet: Kubelet, fake_api: FakeApi
) -> None:
    text = Path(settings.hardware).read_text()
    Path(settings.hardware).write_text(f"{text}  - {{kind: nic, count: 2}}\n")
    start_driver(replace(settings, kinds="gpu"))
    start_driver(replace(settings, driver="nic.dra-testbed.example", kinds="nic"))
    fake_api.wait_until(lambda: len(fake_api.slices) == 2)
    found = {
        each["spec"]["driver"]: [one["name"] for one in each["spec"]["devices"]] for each in fake_api.slices.values()
    }
    assert found == {
        "gpu.dra-testbed.example": ["gpu-0", "gpu-1", "gpu-2", "gpu-3"],
        "nic.dra-testbed.example": ["nic-0", "nic-1"],
    }


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_claims_are_prepared_and_reported_in_an_older_version_of_the_api(
    start_driver: Callable[..., NodeProcess], settings: Settings, fake_api: FakeApi, kubelet: Kubelet, version: str
) -> None:
    fake_api.versions = [version]
    claim = fake_api.claim()
    start_driver(settings)
    answer = kubelet.prepare(settings.data / "dra.sock", claim)[claim["uid"]]
    assert (answer.error, [device.device_name for device in answer.devices]) == ("", ["gpu-0"])
    fake_api.wait_until(lambda: [entry["device"] for entry in fake_api.status()] == ["gpu-0"])


def test_a_mutant_can_replace_the_initial_health(start_driver: Callable[..., NodeProcess], settings: Settings) -> None:
    process = start_driver(settings, ALL_MUTANTS["health-unknown"])
    assert process.health_store.count_by_status() == {UNKNOWN: 4}


@pytest.fixture
def whole_one_other(settings: Settings, fake_api: FakeApi) -> tuple[Any, Any, Any]:
    """Claims for a GPU and for its two halves, and hardware that has them."""
    half = "{name: half, count: 2, takes: {compute: 3}}"
    text = Path(settings.hardware).read_text().partition("  - {kind")[0]
    partitions = f"partitions: {{counters: {{compute: 7}}, profiles: [{half}]}}"
    Path(settings.hardware).write_text(f"{text}  - {{kind: gpu, count: 1, {partitions}}}\n")
    whole, one, other = (fake_api.claim(f"has-{name}", (name,)) for name in ("gpu-0", "gpu-0-half-0", "gpu-0-half-1"))
    return whole, one, other


def test_a_device_and_its_partition_are_never_prepared_together_even_if_one_is_unplugged(
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    kubelet: Kubelet,
    whole_one_other: tuple[Any, Any, Any],
) -> None:
    whole, one, other = whole_one_other
    process, socket = start_driver(settings), settings.data / "dra.sock"
    assert [kubelet.prepare(socket, claim)[claim["uid"]].error for claim in (one, other)] == ["", ""]
    process._hardware.change("unplug", Section("", {"device": "gpu-0-half-0"}, []))
    kubelet.unprepare(socket, other)
    refusal = kubelet.prepare(socket, whole)[whole["uid"]].error
    assert (
        "device gpu-0 is part of the same hardware as device gpu-0-half-0, which is still prepared for claim" in refusal
    )
    kubelet.unprepare(socket, one)
    assert not kubelet.prepare(socket, whole)[whole["uid"]].error


def test_a_refusal_advises_to_release_a_stale_claim_that_holds_a_partition_of_the_device(
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    kubelet: Kubelet,
    fake_api: FakeApi,
    whole_one_other: tuple[Any, Any, Any],
) -> None:
    whole, one, _ = whole_one_other
    start_driver(settings)
    kubelet.prepare(settings.data / "dra.sock", one)
    del fake_api.claims["default", one["name"]]
    refusal = kubelet.prepare(settings.data / "dra.sock", whole)[whole["uid"]].error
    assert (
        f"claim {one['name']} does not exist any more; if the kubelet does not unprepare it soon, release it" in refusal
    )


def test_forget_what_parts_share_prepares_a_device_and_its_partition(
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    kubelet: Kubelet,
    whole_one_other: tuple[Any, Any, Any],
) -> None:
    whole, one, _ = whole_one_other
    start_driver(settings, ALL_MUTANTS["forget-what-parts-share"])
    answers = [kubelet.prepare(settings.data / "dra.sock", claim)[claim["uid"]] for claim in (whole, one)]
    assert [answer.error for answer in answers] == ["", ""]
