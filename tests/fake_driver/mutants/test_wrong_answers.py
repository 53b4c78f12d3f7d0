"""Faults in answers, in what is refused, and in what is left: each beside the right driver, on the wire."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.mutants import selection
from fake_driver.preparing.opaque_configuration import API_VERSION
from fake_driver.roles.node_driver import NodeProcess
from fake_driver.settings import Settings

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi

DRIVER = "gpu.dra-testbed.example"
SHARE = "11111111-1111-4111-8111-111111111111"
SHORT = {"apiVersion": API_VERSION, "kind": "GpuConfig", "sharing": {"strategy": "TimeSlicing", "interval": "Short"}}
WRONG = {**SHORT, "sharing": {"strategy": "TimeSlicing", "interval": "Sometimes"}}


class Judged:
    """A driver with a fault, or a right one, and its kubelet."""

    def __init__(self, settings: Settings, kubelet: Kubelet, api: FakeApi) -> None:
        self.api, self._settings, self._kubelet = api, settings, kubelet
        self._socket = settings.data / "dra.sock"

    def prepare(self, claim: Any) -> Any:
        return self._kubelet.prepare(self._socket, claim)[claim["uid"]]

    def unprepare(self, claim: Any) -> str:
        return str(self._kubelet.unprepare(self._socket, claim)[claim["uid"]].error)

    def configured(self, driver: str, parameters: Any) -> Any:
        """A claim with configuration."""
        claim = self.api.claim()
        devices = self.api.claims["default", "one"]["status"]["allocation"]["devices"]
        devices["config"] = [{"source": "FromClaim", "opaque": {"driver": driver, "parameters": parameters}}]
        return claim

    @property
    def files(self) -> list[str]:
        return [path.read_text() for path in Path(self._settings.cdi).glob("*.json")]


@pytest.fixture
def judged(
    start_driver: Callable[..., NodeProcess], settings: Settings, kubelet: Kubelet, fake_api: FakeApi
) -> Callable[[str], Judged]:
    def make(word: str) -> Judged:
        start_driver(settings, partial(selection.apply, [word] if word else []))
        return Judged(settings, kubelet, fake_api)

    return make


Make = Callable[[str], Judged]


@pytest.mark.parametrize(("word", "count"), [("", 1), ("answer-without-cdi-ids", 0)])
def test_an_answer_without_cdi_ids(judged: Make, fake_api: FakeApi, word: str, count: int) -> None:
    (device,) = judged(word).prepare(fake_api.claim()).devices
    assert len(device.cdi_device_ids) == count


@pytest.mark.parametrize(("word", "named"), [("", "gpu-2"), ("answer-with-another-device", "gpu-0")])
def test_an_answer_with_another_device(judged: Make, fake_api: FakeApi, word: str, named: str) -> None:
    driver = judged(word)
    (device,) = driver.prepare(fake_api.claim(devices=("gpu-2",))).devices
    assert device.device_name == named
    assert "GPU_DEVICE_GPU_2" in driver.files[0]


@pytest.mark.parametrize(("word", "said"), [("", SHARE), ("answer-without-shares", "")])
def test_an_answer_without_shares(judged: Make, fake_api: FakeApi, word: str, said: str) -> None:
    (device,) = judged(word).prepare(fake_api.claim(shareID=SHARE)).devices
    assert device.share_id == said


@pytest.mark.parametrize(
    ("word", "what"), [("", f"gpu/{DRIVER}-metadata.json"), ("mounts-hide-those-of-others", "gpu")]
)
def test_mounts_hide_those_of_others(
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    kubelet: Kubelet,
    fake_api: FakeApi,
    word: str,
    what: str,
) -> None:
    start_driver(replace(settings, metadata="v1beta1"), partial(selection.apply, [word] if word else []))
    claim = fake_api.claim()
    assert not kubelet.prepare(settings.data / "dra.sock", claim)[claim["uid"]].error
    (file,) = Path(settings.cdi).glob("*.json")
    (mount,) = json.loads(file.read_text())["devices"][0]["containerEdits"]["mounts"]
    assert mount["containerPath"].endswith(f"/resourceclaims/one/{what}")
    assert (Path(mount["hostPath"]) / f"{DRIVER}-metadata.json").is_file() is bool(word)


@pytest.mark.parametrize(("word", "same"), [("", False), ("reuse-cdi-names", True)])
def test_reuse_cdi_names(judged: Make, fake_api: FakeApi, word: str, same: bool) -> None:
    driver = judged(word)
    (one,) = driver.prepare(fake_api.claim()).devices
    (two,) = driver.prepare(fake_api.claim("two", devices=("gpu-1",))).devices
    assert (list(one.cdi_device_ids) == list(two.cdi_device_ids)) is same


@pytest.mark.parametrize(("word", "left"), [("", 0), ("leaves-cdi-files", 1)])
def test_leaves_cdi_files(judged: Make, fake_api: FakeApi, word: str, left: int) -> None:
    driver, claim = judged(word), fake_api.claim()
    driver.prepare(claim)
    assert driver.unprepare(claim) == ""
    assert len(driver.files) == left
    assert not driver.prepare(fake_api.claim("two")).error


@pytest.mark.parametrize(("word", "said"), [("", "is still prepared"), ("prepares-busy-devices", "")])
def test_prepares_busy_devices(judged: Make, fake_api: FakeApi, word: str, said: str) -> None:
    driver = judged(word)
    driver.prepare(fake_api.claim())
    error = driver.prepare(fake_api.claim("two")).error
    assert (said in error, bool(error)) == (True, bool(said))


@pytest.mark.parametrize(("word", "refused"), [("", True), ("make-up-devices", False)])
def test_make_up_devices(judged: Make, fake_api: FakeApi, word: str, refused: bool) -> None:
    assert bool(judged(word).prepare(fake_api.claim(devices=("no-such-device",))).error) is refused


@pytest.mark.parametrize(("word", "shown"), [("", True), ("ignores-claim-config", False)])
def test_ignores_claim_config(judged: Make, word: str, shown: bool) -> None:
    driver = judged(word)
    assert not driver.prepare(driver.configured(DRIVER, SHORT)).error
    assert ("SHARING_INTERVAL=Short" in driver.files[0]) is shown


@pytest.mark.parametrize(("word", "shown"), [("", False), ("takes-config-of-others", True)])
def test_takes_config_of_others(judged: Make, word: str, shown: bool) -> None:
    driver = judged(word)
    assert not driver.prepare(driver.configured("another-driver.example", SHORT)).error
    assert ("SHARING_INTERVAL=Short" in driver.files[0]) is shown


@pytest.mark.parametrize(("word", "said"), [("", "sharing.interval"), ("swallows-config-errors", "")])
def test_swallows_config_errors(judged: Make, word: str, said: str) -> None:
    driver = judged(word)
    error = driver.prepare(driver.configured(DRIVER, WRONG)).error
    assert (said in error, bool(error)) == (True, bool(said))


def test_swallows_config_errors_applies_valid_configuration(judged: Make) -> None:
    driver = judged("swallows-config-errors")
    driver.prepare(driver.configured(DRIVER, SHORT))
    assert "SHARING_INTERVAL=Short" in driver.files[0]


@pytest.mark.parametrize(("word", "free"), [("", True), ("refused-claims-stay-prepared", False)])
def test_refused_claims_stay_prepared(judged: Make, fake_api: FakeApi, word: str, free: bool) -> None:
    driver = judged(word)
    claim = driver.configured(DRIVER, WRONG)
    assert driver.prepare(claim).error
    assert driver.unprepare(claim) == ""
    assert (driver.prepare(fake_api.claim("two")).error == "") is free


@pytest.mark.parametrize(("word", "works"), [("", True), ("once-refused-always-refused", False)])
def test_once_refused_always_refused(judged: Make, fake_api: FakeApi, word: str, works: bool) -> None:
    driver, owner, other = judged(word), fake_api.claim(), fake_api.claim("two")
    driver.prepare(owner)
    assert driver.prepare(other).error
    driver.unprepare(owner)
    assert (driver.prepare(other).error == "") is works


@pytest.mark.parametrize(("word", "refused"), [("", True), ("refuses-once", False)])
def test_refuses_once(judged: Make, fake_api: FakeApi, word: str, refused: bool) -> None:
    driver, claim = judged(word), fake_api.claim(devices=("no-such-device",))
    assert driver.prepare(claim).error
    answer = driver.prepare(claim)
    assert (bool(answer.error), len(answer.devices)) == (refused, 0)


@pytest.mark.parametrize(("word", "works"), [("", True), ("unprepare-needs-the-claim", False)])
def test_unprepare_needs_the_claim(judged: Make, fake_api: FakeApi, word: str, works: bool) -> None:
    driver, claim = judged(word), fake_api.claim()
    driver.prepare(claim)
    fake_api.claims.clear()
    assert (driver.unprepare(claim) == "") is works


@pytest.mark.parametrize(("word", "works"), [("", True), ("unprepare-of-unknown-fails", False)])
def test_unprepare_of_unknown_fails(judged: Make, fake_api: FakeApi, word: str, works: bool) -> None:
    driver, claim, known = judged(word), fake_api.claim(), fake_api.claim("two")
    driver.prepare(known)
    assert (driver.unprepare(claim) == "") is works
    assert driver.unprepare(known) == ""
