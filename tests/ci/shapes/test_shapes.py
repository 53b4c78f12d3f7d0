"""The shapes of drivers: their table names what exists, and their verdicts are compared with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.mutants import known
from ci.shapes.judging import entries_of, problems_of_shape, problems_of_twin
from ci.shapes.table import SHAPES, Shape, choose
from testbed.conformance import profiles
from testbed.errors import UsageError
from testbed.models.driver_file import load_driver_file
from testbed.models.requirement_enums import Verdict

SHAPE = Shape("odd", "a driver of another kind", ("PREP-004",), "prepares-anything", ("PREP-004",))
BY_NAME = {each.name: each for each in SHAPES}


@pytest.mark.parametrize("name", BY_NAME)
def test_a_shape_has_a_valid_driver_file_and_a_mutant_as_its_twin(name: str) -> None:
    shape = BY_NAME[name]
    assert load_driver_file(Path(shape.driver_file)).install
    assert shape.twin in known.drivers()


@pytest.mark.parametrize("name", BY_NAME)
def test_a_shape_runs_smoke_and_all_requirements_of_its_own(name: str) -> None:
    shape = BY_NAME[name]
    runs = {entry.requirement.id for entry in entries_of(shape, profiles.SMOKE)}
    assert runs == profiles.profile(profiles.SMOKE).ids | set(shape.own) | set(shape.caught_by)


@pytest.mark.parametrize(
    ("seen", "problems"),
    [
        ({"PREP-004": Verdict.PASS, "CLAIM-001": Verdict.NOT_APPLICABLE}, []),
        ({"PREP-004": Verdict.PASS, "CLAIM-001": Verdict.FAIL}, ["CLAIM-001 is fail for a correct driver"]),
        ({"PREP-004": Verdict.PASS, "CLAIM-001": None}, ["CLAIM-001 is not judged for a correct driver"]),
        (
            {"PREP-004": Verdict.NOT_APPLICABLE},
            ["PREP-004 is not-applicable, and must pass: it is about this shape"],
        ),
        ({}, ["PREP-004 is not judged, and must pass: it is about this shape"]),
    ],
)
def test_a_correct_driver_passes_what_is_about_its_shape(seen: dict[str, Verdict | None], problems: list[str]) -> None:
    assert list(problems_of_shape(SHAPE, seen)) == problems


@pytest.mark.parametrize(
    ("seen", "problems"),
    [
        ({"PREP-004": Verdict.FAIL, "CLAIM-001": Verdict.PASS}, []),
        ({"PREP-004": Verdict.PASS}, ["PREP-004 is pass for prepares-anything, and must fail"]),
        ({"PREP-004": Verdict.ERROR}, ["PREP-004 is error for prepares-anything, and must fail"]),
        (
            {"PREP-004": Verdict.FAIL, "CLAIM-001": Verdict.BLOCKED},
            ["CLAIM-001 is blocked for prepares-anything, which is wrong about something else"],
        ),
    ],
)
def test_a_twin_fails_exactly_what_must_catch_it(seen: dict[str, Verdict | None], problems: list[str]) -> None:
    assert list(problems_of_twin(SHAPE, seen)) == problems


def test_an_unknown_shape_is_refused() -> None:
    with pytest.raises(UsageError, match="no shape round"):
        choose(["round"])
