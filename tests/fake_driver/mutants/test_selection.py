from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fake_driver.crash_points import CRASH_POINTS
from fake_driver.errors import ConfigurationError
from fake_driver.mutants import selection

if TYPE_CHECKING:
    from tests.fake_driver.mutants.conftest import PartsWith


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_a_crash_kills_the_process_once_at_its_point(
    parts_with: PartsWith, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    exits: list[int] = []
    monkeypatch.setattr("os._exit", exits.append)
    for _ in range(2):
        at_crash_point = parts_with(f"crash-{point}").at_crash_point
        for here in CRASH_POINTS * 2:
            at_crash_point(here)
    assert exits == [137]


def test_an_unknown_mutant_is_refused_with_a_suggestion(parts_with: PartsWith) -> None:
    with pytest.raises(ConfigurationError, match="unknown mutant 'no-envs'; did you mean no-env"):
        parts_with("no-envs")


def test_every_mutant_can_be_selected_and_has_a_description() -> None:
    assert selection.MUTANTS.items() <= selection.ALL_MUTANTS.items()
    assert all(mutant.__doc__ for mutant in selection.ALL_MUTANTS.values())
