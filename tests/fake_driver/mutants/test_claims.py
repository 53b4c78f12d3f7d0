from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, PreparedClaim

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi
    from tests.fake_driver.mutants.conftest import PartsWith, StartMutant


def results(fake_api: FakeApi) -> Any:
    """Return the allocation results of claim `one`, which tests may change."""
    return fake_api.claims["default", "one"]["status"]["allocation"]["devices"]["results"]


@pytest.mark.parametrize(("name", "is_same"), [("", False), ("know-claims-by-name", True)])
def test_know_claims_by_name(mutant: StartMutant, fake_api: FakeApi, name: str, is_same: bool) -> None:
    driver, claim = mutant(name), fake_api.claim()
    (before,) = driver.prepare(claim).devices
    driver.unprepare(claim)
    (after,) = driver.prepare(fake_api.claim(uid="2e000000-0000-4000-8000-000000000001")).devices
    assert (list(before.cdi_device_ids) == list(after.cdi_device_ids)) is is_same


@pytest.mark.parametrize(("name", "is_refused"), [("", True), ("make-up-devices", False)])
def test_make_up_devices(mutant: StartMutant, fake_api: FakeApi, name: str, is_refused: bool) -> None:
    assert bool(mutant(name).prepare(fake_api.claim(devices=("no-such-device",))).error) is is_refused


@pytest.mark.parametrize(("name", "error"), [("", "belongs to pool elsewhere"), ("know-devices-by-name", "")])
def test_know_devices_by_name(mutant: StartMutant, fake_api: FakeApi, name: str, error: str) -> None:
    claim = fake_api.claim()
    results(fake_api)[0]["pool"] = "elsewhere"
    found = mutant(name).prepare(claim).error
    assert error in found
    assert bool(found) is bool(error)


@pytest.mark.parametrize(("name", "found"), [("", "gpu-3"), ("lost-devices-shift-names", "gpu-1")])
def test_lost_devices_shift_names(parts_with: PartsWith, name: str, found: str) -> None:
    inventory = parts_with(name).inventory
    assert inventory.find(inventory.pool, "gpu-3").name == "gpu-3"
    inventory.set_devices(inventory.devices[1:])
    assert inventory.find(inventory.pool, "gpu-3").name == found


@pytest.mark.parametrize(("name", "count"), [("", 1), ("take-devices-of-other-drivers", 2)])
def test_take_devices_of_other_drivers(mutant: StartMutant, fake_api: FakeApi, name: str, count: int) -> None:
    claim = fake_api.claim(devices=("gpu-0", "gpu-1"))
    results(fake_api)[1]["driver"] = "other.example"
    assert len(mutant(name).prepare(claim).devices) == count


@pytest.mark.parametrize(("name", "count"), [("", 0), ("leaves-out-unknown-devices", 1)])
def test_leaves_out_unknown_devices(mutant: StartMutant, fake_api: FakeApi, name: str, count: int) -> None:
    answer = mutant(name).prepare(fake_api.claim(devices=("gpu-0", "no-such-device")))
    assert bool(answer.error) is (count == 0)
    assert len(answer.devices) == count


@pytest.mark.parametrize(
    ("name", "devices"), [("", ["gpu-0", "gpu-1"]), ("remembers-the-first-allocation", ["gpu-0", "gpu-0"])]
)
def test_remembers_the_first_allocation(mutant: StartMutant, fake_api: FakeApi, name: str, devices: list[str]) -> None:
    driver, claim = mutant(name), fake_api.claim()
    (before,) = driver.prepare(claim).devices
    driver.unprepare(claim)
    (after,) = driver.prepare(fake_api.claim(devices=("gpu-1",))).devices
    assert [before.device_name, after.device_name] == devices


@pytest.mark.parametrize(("name", "error"), [("", "is still prepared"), ("prepares-busy-devices", "")])
def test_prepares_busy_devices(mutant: StartMutant, fake_api: FakeApi, name: str, error: str) -> None:
    driver = mutant(name)
    driver.prepare(fake_api.claim())
    found = driver.prepare(fake_api.claim("two")).error
    assert error in found
    assert bool(found) is bool(error)


@pytest.mark.parametrize(("name", "is_refused"), [("", False), ("admin-takes-device", True)])
def test_admin_takes_device(mutant: StartMutant, fake_api: FakeApi, name: str, is_refused: bool) -> None:
    driver = mutant(name)
    assert not driver.prepare(fake_api.claim("user")).error
    assert bool(driver.prepare(fake_api.claim("admin", adminAccess=True)).error) is is_refused


@pytest.mark.parametrize(("name", "is_refused"), [("", False), ("refuse-administrators", True)])
def test_refuse_administrators(mutant: StartMutant, fake_api: FakeApi, name: str, is_refused: bool) -> None:
    driver = mutant(name)
    assert bool(driver.prepare(fake_api.claim("admin", adminAccess=True)).error) is is_refused
    assert not driver.prepare(fake_api.claim("user", devices=("gpu-1",))).error


@pytest.mark.parametrize(("name", "is_refused"), [("", False), ("shares-exclude-each-other", True)])
def test_shares_exclude_each_other(parts_with: PartsWith, name: str, is_refused: bool) -> None:
    one, other = (
        PreparedClaim(ClaimRef(uid), (AllocatedDevice("r", "worker", "gpu-0", share_id=f"share-{uid}"),))
        for uid in "ab"
    )
    assert bool(parts_with(name).conflict(one, {"b": other})) is is_refused


@pytest.mark.parametrize(("name", "is_refused"), [("", False), ("refuse-alternatives", True)])
def test_refuse_alternatives(mutant: StartMutant, fake_api: FakeApi, name: str, is_refused: bool) -> None:
    claim = fake_api.claim()
    results(fake_api)[0]["request"] = "gpu/big"
    assert bool(mutant(name).prepare(claim).error) is is_refused
