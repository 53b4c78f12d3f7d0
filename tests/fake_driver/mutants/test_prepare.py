from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fake_driver.mutants import prepare
from fake_driver.preparing.opaque_configuration import API_VERSION

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi
    from tests.fake_driver.mutants.conftest import StartMutant

SHARE = "11111111-1111-4111-8111-111111111111"
INVALID_CONFIG = {
    "source": "FromClaim",
    "opaque": {
        "driver": "gpu.dra-testbed.example",
        "parameters": {
            "apiVersion": API_VERSION,
            "kind": "GpuConfig",
            "sharing": {"strategy": "TimeSlicing", "interval": "Sometimes"},
        },
    },
}


@pytest.mark.parametrize(("name", "is_prepared"), [("", True), ("once-refused-always-refused", False)])
def test_once_refused_always_refused(mutant: StartMutant, fake_api: FakeApi, name: str, is_prepared: bool) -> None:
    driver, holder, other = mutant(name), fake_api.claim(), fake_api.claim("two")
    driver.prepare(holder)
    assert driver.prepare(other).error
    driver.unprepare(holder)
    assert (driver.prepare(other).error == "") is is_prepared


@pytest.mark.parametrize(("name", "is_refused"), [("", True), ("refuses-once", False)])
def test_refuses_once(mutant: StartMutant, fake_api: FakeApi, name: str, is_refused: bool) -> None:
    driver, claim = mutant(name), fake_api.claim(devices=("no-such-device",))
    assert driver.prepare(claim).error
    answer = driver.prepare(claim)
    assert (bool(answer.error), len(answer.devices)) == (is_refused, 0)


@pytest.mark.parametrize(("name", "is_free"), [("", True), ("refused-claims-stay-prepared", False)])
def test_refused_claims_stay_prepared(mutant: StartMutant, fake_api: FakeApi, name: str, is_free: bool) -> None:
    driver, claim = mutant(name), fake_api.claim(config=(INVALID_CONFIG,))
    assert driver.prepare(claim).error
    assert driver.unprepare(claim) == ""
    assert (driver.prepare(fake_api.claim("two")).error == "") is is_free


@pytest.mark.parametrize(("name", "is_refused"), [("", False), ("one-claim-at-a-time", True)])
def test_one_claim_at_a_time(mutant: StartMutant, fake_api: FakeApi, name: str, is_refused: bool) -> None:
    driver = mutant(name)
    driver.prepare(fake_api.claim("one"))
    assert bool(driver.prepare(fake_api.claim("two", devices=("gpu-1",))).error) is is_refused


@pytest.mark.parametrize(("name", "counts"), [("", [2, 2]), ("prepare-twice-differently", [2, 1])])
def test_prepare_twice_differently(mutant: StartMutant, fake_api: FakeApi, name: str, counts: list[int]) -> None:
    driver, claim = mutant(name), fake_api.claim(devices=("gpu-0", "gpu-1"))
    assert [len(driver.prepare(claim).devices) for _ in range(2)] == counts


@pytest.mark.parametrize(("name", "error"), [("", ""), ("refuses-what-is-prepared", "is prepared already")])
def test_refuses_what_is_prepared(mutant: StartMutant, fake_api: FakeApi, name: str, error: str) -> None:
    driver, claim = mutant(name), fake_api.claim()
    assert driver.prepare(claim).error == ""
    found = driver.prepare(claim).error
    assert error in found
    assert bool(found) is bool(error)


@pytest.mark.parametrize(("name", "count"), [("", 2), ("first-device-only", 1)])
def test_first_device_only(mutant: StartMutant, fake_api: FakeApi, name: str, count: int) -> None:
    assert len(mutant(name).prepare(fake_api.claim(devices=("gpu-0", "gpu-1"))).devices) == count


@pytest.mark.parametrize(("name", "count"), [("", 1), ("answer-without-devices", 0)])
def test_answer_without_devices(mutant: StartMutant, fake_api: FakeApi, name: str, count: int) -> None:
    answer = mutant(name).prepare(fake_api.claim())
    assert (answer.error, len(answer.devices)) == ("", count)


@pytest.mark.parametrize(("name", "count"), [("", 1), ("answers-nothing-while-it-starts", 0)])
def test_answers_nothing_while_it_starts(
    mutant: StartMutant, fake_api: FakeApi, monkeypatch: pytest.MonkeyPatch, name: str, count: int
) -> None:
    driver, claim = mutant(name), fake_api.claim()
    assert len(driver.prepare(claim).devices) == count
    monkeypatch.setattr(prepare, "_SECONDS_TO_START", 0)
    assert len(driver.prepare(claim).devices) == 1


@pytest.mark.parametrize(("name", "requests"), [("", ["left", "right"]), ("forget-request-names", ["right", "left"])])
def test_forget_request_names(mutant: StartMutant, fake_api: FakeApi, name: str, requests: list[str]) -> None:
    claim = fake_api.claim(devices=("gpu-0", "gpu-1"))
    results = fake_api.claims["default", "one"]["status"]["allocation"]["devices"]["results"]
    results[0]["request"], results[1]["request"] = "left", "right"
    answered = [list(device.request_names) for device in mutant(name).prepare(claim).devices]
    assert answered == [[request] for request in requests]


@pytest.mark.parametrize(("name", "request_"), [("", "gpu"), ("answer-with-subrequest-names", "gpu/big")])
def test_answer_with_subrequest_names(mutant: StartMutant, fake_api: FakeApi, name: str, request_: str) -> None:
    claim = fake_api.claim()
    fake_api.claims["default", "one"]["status"]["allocation"]["devices"]["results"][0]["request"] = "gpu/big"
    (device,) = mutant(name).prepare(claim).devices
    assert list(device.request_names) == [request_]


@pytest.mark.parametrize(("name", "is_same"), [("", False), ("answer-for-the-wrong-claim", True)])
def test_answer_for_the_wrong_claim(mutant: StartMutant, fake_api: FakeApi, name: str, is_same: bool) -> None:
    driver = mutant(name)
    (one,) = driver.prepare(fake_api.claim("one")).devices
    (two,) = driver.prepare(fake_api.claim("two", devices=("gpu-1",))).devices
    assert (one.device_name == two.device_name) is is_same


@pytest.mark.parametrize(("name", "count"), [("", 1), ("answer-without-cdi-ids", 0)])
def test_answer_without_cdi_ids(mutant: StartMutant, fake_api: FakeApi, name: str, count: int) -> None:
    (device,) = mutant(name).prepare(fake_api.claim()).devices
    assert len(device.cdi_device_ids) == count


@pytest.mark.parametrize(("name", "device_name"), [("", "gpu-2"), ("answer-with-another-device", "gpu-0")])
def test_answer_with_another_device(mutant: StartMutant, fake_api: FakeApi, name: str, device_name: str) -> None:
    driver = mutant(name)
    (device,) = driver.prepare(fake_api.claim(devices=("gpu-2",))).devices
    assert device.device_name == device_name
    assert "GPU_DEVICE_GPU_2=gpu-2" in driver.env


@pytest.mark.parametrize(("name", "has_requests"), [("", True), ("answer-without-request-names", False)])
def test_answer_without_request_names(mutant: StartMutant, fake_api: FakeApi, name: str, has_requests: bool) -> None:
    (device,) = mutant(name).prepare(fake_api.claim()).devices
    assert bool(device.request_names) is has_requests


@pytest.mark.parametrize(("name", "share"), [("", SHARE), ("answer-without-shares", "")])
def test_answer_without_shares(mutant: StartMutant, fake_api: FakeApi, name: str, share: str) -> None:
    (device,) = mutant(name).prepare(fake_api.claim(shareID=SHARE)).devices
    assert device.share_id == share


@pytest.mark.parametrize(("name", "is_wrong"), [("", False), ("one-bad-claim-fails-all", True)])
def test_one_bad_claim_fails_all(mutant: StartMutant, fake_api: FakeApi, name: str, is_wrong: bool) -> None:
    good, bad = mutant(name).prepare_all(fake_api.claim("good"), fake_api.claim("bad", devices=("gpu-99",)))
    assert bad.error
    assert bool(good.error) is bool(not good.devices) is is_wrong
