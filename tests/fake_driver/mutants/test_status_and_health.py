from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fake_driver.devices.health import HEALTHY, UNHEALTHY, UNKNOWN, Health

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi
    from tests.fake_driver.mutants.conftest import PartsWith, StartMutant

SERVER = str(Path(__file__).parents[3] / "manifests/hardware/server.yaml")


def test_status_never_written(mutant: StartMutant, fake_api: FakeApi) -> None:
    driver = mutant("status-never-written")
    assert not driver.prepare(fake_api.claim()).error
    driver.process.stop()
    assert fake_api.applied == []


@pytest.mark.parametrize(("name", "index"), [("", 1), ("status-of-another-device", 0)])
def test_status_of_another_device(mutant: StartMutant, fake_api: FakeApi, name: str, index: int) -> None:
    assert not mutant(name).prepare(fake_api.claim(devices=("gpu-1",))).error
    fake_api.wait_until(lambda: bool(fake_api.status()))
    (entry,) = fake_api.status()
    assert (entry["device"], entry["data"]["index"]) == ("gpu-1", index)


@pytest.mark.parametrize(
    ("name", "is_named"),
    [("", False), ("status-message-of-another-device", True), ("status-sentence-about-another-device", True)],
)
def test_status_message_of_another_device(mutant: StartMutant, fake_api: FakeApi, name: str, is_named: bool) -> None:
    driver = mutant(name)
    assert not driver.prepare(fake_api.claim(devices=("gpu-1",))).error
    fake_api.wait_until(lambda: bool(fake_api.status()))
    (entry,) = fake_api.status()
    other, own = (str(each.attributes["uuid"]) for each in driver.process._parts.inventory.devices[:2])
    assert entry["data"]["uuid"] == own
    message = entry["conditions"][0]["message"]
    assert (other in message) is is_named
    assert (f"uuid={other};" in message) is (name == "status-sentence-about-another-device")


@pytest.mark.parametrize(("name", "status"), [("", "True"), ("status-says-not-ready", "False")])
def test_status_says_not_ready(mutant: StartMutant, fake_api: FakeApi, name: str, status: str) -> None:
    mutant(name).prepare(fake_api.claim())
    fake_api.wait_until(lambda: bool(fake_api.status()))
    (condition,) = fake_api.status()[0]["conditions"]
    assert condition["status"] == status


@pytest.mark.parametrize(("name", "is_kept"), [("", True), ("status-replaces-all", False)])
def test_status_replaces_all(mutant: StartMutant, fake_api: FakeApi, name: str, is_kept: bool) -> None:
    claim = fake_api.claim(devices=("gpu-0", "gpu-1"))
    status = fake_api.claims["default", "one"]["status"]
    status["allocation"]["devices"]["results"][1]["driver"] = "other.example"
    theirs = {"driver": "other.example", "pool": "worker", "device": "gpu-1", "data": {"speed": "100G"}}
    status["devices"] = [theirs]
    mutant(name).prepare(claim)
    fake_api.wait_until(lambda: "gpu-0" in {entry["device"] for entry in fake_api.status()})
    assert (theirs in fake_api.status()) is is_kept
    fake_api.requested.discard(("resourceclaims/status", "update"))  # the manifests allow it for this mutant only


@pytest.mark.parametrize(
    ("name", "statuses", "has_message"),
    [
        ("", {HEALTHY, UNHEALTHY}, True),
        ("health-unknown", {UNKNOWN}, False),
        ("health-always-well", {HEALTHY}, False),
        ("health-without-words", {HEALTHY, UNHEALTHY}, False),
    ],
)
def test_initial_health(parts_with: PartsWith, name: str, statuses: set[str], has_message: bool) -> None:
    parts = parts_with(name, hardware=SERVER)
    found = [parts.initial_health(device) for device in parts.inventory.devices]
    assert {each.status for each in found} == statuses
    assert any(each.message for each in found) is has_message


@pytest.mark.parametrize(("name", "second"), [("", HEALTHY), ("health-unknown-after-a-restart", UNKNOWN)])
def test_health_unknown_after_a_restart(parts_with: PartsWith, name: str, second: str) -> None:
    starts = [parts_with(name) for _ in range(2)]
    assert [parts.initial_health(parts.inventory.devices[0]).status for parts in starts] == [HEALTHY, second]


@pytest.mark.parametrize(("name", "status"), [("", UNHEALTHY), ("health-told-once", HEALTHY)])
def test_health_told_once(parts_with: PartsWith, name: str, status: str) -> None:
    health_store = parts_with(name).health_store({("n", "gpu-0"): Health()})
    health_store.set(("n", "gpu-0"), Health(UNHEALTHY))
    health_store.set(("n", "gpu-1"), Health(UNKNOWN))
    assert health_store.count_by_status() == {status: 1, UNKNOWN: 1}
