from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fake_driver.mutants import slice_changes
from fake_driver.strict_decoding import Section

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi
    from tests.fake_driver.mutants.conftest import Mutant, StartMutant


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_SECONDS_UNTIL_READY", "_SECONDS_BETWEEN"):
        monkeypatch.setattr(slice_changes, name, 0.05)


def _published(driver: Mutant, fake_api: FakeApi) -> Mutant:
    fake_api.wait_until(driver.process._publisher.published.is_set)
    return driver


@pytest.mark.parametrize(("name", "devices"), [("", 4), ("pools-without-devices", 0)])
def test_pools_without_devices(mutant: StartMutant, fake_api: FakeApi, name: str, devices: int) -> None:
    _published(mutant(name), fake_api)
    (spec,) = (each["spec"] for each in fake_api.slices.values())
    assert (len(spec["devices"]), spec["pool"]["resourceSliceCount"]) == (devices, 1)


def test_slices_for_all_nodes(mutant: StartMutant, fake_api: FakeApi) -> None:
    mutant("slices-for-all-nodes")
    fake_api.wait_until(lambda: bool(fake_api.slices))
    (spec,) = (each["spec"] for each in fake_api.slices.values())
    assert (spec.get("nodeName"), spec["allNodes"], len(spec["devices"])) == (None, True, 4)


def test_rewrites_slices_in_place(mutant: StartMutant, fake_api: FakeApi) -> None:
    _published(mutant("rewrites-slices-in-place"), fake_api)
    (before,) = fake_api.slices.values()
    fake_api.wait_until(lambda: len(fake_api.writes) == 3)
    (after,) = fake_api.slices.values()
    assert [each.partition(" ")[0] for each in fake_api.writes] == ["POST", "PUT", "PUT"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert len(after["spec"]["devices"]) == 4


def test_rewrites_slices_in_place_after_a_change(mutant: StartMutant, fake_api: FakeApi) -> None:
    driver = _published(mutant("rewrites-slices-in-place"), fake_api)
    fake_api.wait_until(lambda: len(fake_api.writes) == 3)
    driver.process._hardware.change("unplug", Section("", {"device": "gpu-0"}, []))
    fake_api.wait_until(lambda: len(fake_api.writes) == 6)
    (slice_,) = fake_api.slices.values()
    assert [each["name"] for each in slice_["spec"]["devices"]] == ["gpu-1", "gpu-2", "gpu-3"]
    assert {each.partition(" ")[0] for each in fake_api.writes[1:]} == {"PUT"}


def test_publishes_again_and_again(mutant: StartMutant, fake_api: FakeApi) -> None:
    _published(mutant("publishes-again-and-again"), fake_api)
    fake_api.wait_until(lambda: len(fake_api.writes) >= 5)
    verbs = [each.partition(" ")[0] for each in fake_api.writes]
    assert verbs[:5] == ["POST", "DELETE", "POST", "DELETE", "POST"]


def _names(fake_api: FakeApi) -> list[str]:
    (slice_,) = fake_api.slices.values()
    return [each["name"] for each in slice_["spec"]["devices"]]


@pytest.mark.parametrize(("name", "stays"), [("", True), ("unpublishes-devices-in-use", False)])
def test_unpublishes_devices_in_use(mutant: StartMutant, fake_api: FakeApi, name: str, stays: bool) -> None:
    driver, claim, every = mutant(name), fake_api.claim(), [f"gpu-{index}" for index in range(4)]
    _published(driver, fake_api)
    driver.prepare(claim)
    if not stays:
        fake_api.wait_until(lambda: _names(fake_api) == every[1:])
        driver.restart()
    assert driver.prepare(claim).error == ""
    assert (_names(fake_api) == every) is stays
    driver.unprepare(claim)
    fake_api.wait_until(lambda: _names(fake_api) == every)
