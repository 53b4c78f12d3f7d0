from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi
    from tests.fake_driver.mutants.conftest import StartMutant


@pytest.mark.parametrize(("name", "error"), [("", ""), ("unprepare-fails", "mutant unprepare-fails")])
def test_unprepare_fails(mutant: StartMutant, fake_api: FakeApi, name: str, error: str) -> None:
    driver, claim = mutant(name), fake_api.claim()
    assert not driver.prepare(claim).error
    assert error in driver.unprepare(claim)
    assert driver.has_cdi_file(claim) is bool(name)


@pytest.mark.parametrize(("name", "error"), [("", ""), ("never-give-back", "was not unprepared yet")])
def test_never_give_back(mutant: StartMutant, fake_api: FakeApi, name: str, error: str) -> None:
    driver, claim = mutant(name), fake_api.claim()
    driver.prepare(claim)
    assert driver.unprepare(claim) == ""
    assert not driver.has_cdi_file(claim)
    found = driver.prepare(fake_api.claim("two")).error
    assert error in found
    assert bool(found) is bool(error)


@pytest.mark.parametrize(("name", "is_kept"), [("", True), ("unprepare-forgets-the-device", False)])
def test_unprepare_forgets_the_device(mutant: StartMutant, fake_api: FakeApi, name: str, is_kept: bool) -> None:
    driver, user, monitor = mutant(name), fake_api.claim("user"), fake_api.claim("monitor", adminAccess=True)
    other = fake_api.claim("other", devices=("gpu-1",))
    for claim in (user, monitor, other):
        driver.prepare(claim)
    driver.unprepare(monitor)
    assert driver.has_cdi_file(user) is is_kept
    assert driver.has_cdi_file(other)


@pytest.mark.parametrize(("name", "files"), [("", 0), ("leaves-cdi-files", 1)])
def test_leaves_cdi_files(mutant: StartMutant, fake_api: FakeApi, name: str, files: int) -> None:
    driver, claim = mutant(name), fake_api.claim()
    driver.prepare(claim)
    assert driver.unprepare(claim) == ""
    assert len(driver.cdi_files) == files
    assert not driver.prepare(fake_api.claim("two")).error


@pytest.mark.parametrize(("name", "succeeds"), [("", True), ("unprepare-needs-the-claim", False)])
def test_unprepare_needs_the_claim(mutant: StartMutant, fake_api: FakeApi, name: str, succeeds: bool) -> None:
    driver, claim = mutant(name), fake_api.claim()
    driver.prepare(claim)
    fake_api.claims.clear()
    assert (driver.unprepare(claim) == "") is succeeds


@pytest.mark.parametrize(("name", "succeeds"), [("", True), ("unprepare-of-unknown-fails", False)])
def test_unprepare_of_unknown_fails(mutant: StartMutant, fake_api: FakeApi, name: str, succeeds: bool) -> None:
    driver, unknown, prepared = mutant(name), fake_api.claim(), fake_api.claim("two")
    driver.prepare(prepared)
    assert (driver.unprepare(unknown) == "") is succeeds
    assert driver.unprepare(prepared) == ""


@pytest.mark.parametrize(("name", "files"), [("", 1), ("unprepare-by-name", 0)])
def test_unprepare_by_name(mutant: StartMutant, fake_api: FakeApi, name: str, files: int) -> None:
    driver, old = mutant(name), fake_api.claim()
    driver.prepare(fake_api.claim(uid="2e000000-0000-4000-8000-000000000001"))
    assert driver.unprepare(old) == ""
    assert len(driver.cdi_files) == files


@pytest.mark.parametrize(("name", "error"), [("", ""), ("unprepares-only-its-own", "prepared by another process")])
def test_unprepares_only_its_own(mutant: StartMutant, fake_api: FakeApi, name: str, error: str) -> None:
    driver, old, new = mutant(name), fake_api.claim(), fake_api.claim("two", devices=("gpu-1",))
    driver.prepare(old)
    driver.restart()
    driver.prepare(new)
    assert driver.unprepare(new) == ""
    found = driver.unprepare(old)
    assert error in found
    assert bool(found) is bool(error)
