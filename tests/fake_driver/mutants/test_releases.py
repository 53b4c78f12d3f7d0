"""Each test starts the correct driver first, as the previous release, and then a process of this release with the same files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi
    from tests.fake_driver.mutants.conftest import Mutant, StartMutant


def _updated(mutant: StartMutant, old: Mutant, name: str) -> Mutant:
    """Return a process with this mutant that replaces a process of another release."""
    old.disconnect()
    return mutant(name)


@pytest.mark.parametrize(("name", "is_kept"), [("", True), ("forgets-the-previous-release", False)])
def test_forgets_the_previous_release(mutant: StartMutant, fake_api: FakeApi, name: str, is_kept: bool) -> None:
    old, claim = mutant(""), fake_api.claim()
    old.prepare(claim)
    new = _updated(mutant, old, name)
    assert new.has_cdi_file(claim) is is_kept
    new.prepare(claim)
    new.restart()
    assert new.has_cdi_file(claim)


@pytest.mark.parametrize(
    ("name", "error"), [("", ""), ("refuses-claims-of-the-previous-release", "prepared by the previous release")]
)
def test_refuses_claims_of_the_previous_release(mutant: StartMutant, fake_api: FakeApi, name: str, error: str) -> None:
    old, claim = mutant(""), fake_api.claim()
    old.prepare(claim)
    new = _updated(mutant, old, name)
    assert error in new.unprepare(claim)
    new.prepare(claim)
    assert new.unprepare(claim) == ""


@pytest.mark.parametrize("name", ["", "migrates-its-checkpoint-for-good"])
def test_migrates_its_checkpoint_for_good(mutant: StartMutant, fake_api: FakeApi, name: str) -> None:
    old, claim = mutant(""), fake_api.claim()
    old.prepare(claim)
    new = _updated(mutant, old, name)
    assert new.prepare(claim).devices == _updated(mutant, new, name).prepare(claim).devices != []
    if name:
        with pytest.raises(FileExistsError):
            _updated(mutant, new, "")
    else:
        assert _updated(mutant, new, "").unprepare(claim) == ""
