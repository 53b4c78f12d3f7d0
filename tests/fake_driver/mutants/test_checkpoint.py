from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi
    from tests.fake_driver.mutants.conftest import StartMutant


@pytest.mark.parametrize(("name", "is_refused"), [("", True), ("forget-the-checkpoint", False)])
def test_forget_the_checkpoint(mutant: StartMutant, fake_api: FakeApi, name: str, is_refused: bool) -> None:
    driver = mutant(name)
    driver.prepare(fake_api.claim("one"))
    assert bool(driver.prepare(fake_api.claim("two")).error) is is_refused


@pytest.mark.parametrize(("name", "is_kept"), [("", True), ("starts-clean", False)])
def test_starts_clean(mutant: StartMutant, fake_api: FakeApi, name: str, is_kept: bool) -> None:
    driver, claim = mutant(name), fake_api.claim()
    driver.prepare(claim)
    assert driver.has_cdi_file(claim)
    driver.restart()
    assert driver.has_cdi_file(claim) is is_kept


@pytest.mark.parametrize(("name", "is_written"), [("", True), ("trusts-its-checkpoint", False)])
def test_trusts_its_checkpoint(mutant: StartMutant, fake_api: FakeApi, name: str, is_written: bool) -> None:
    driver, claim = mutant(name), fake_api.claim()
    driver.prepare(claim)
    for file in driver.cdi_files:
        file.unlink()
    assert driver.prepare(claim).devices
    assert driver.has_cdi_file(claim) is is_written
