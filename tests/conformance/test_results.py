from __future__ import annotations

import itertools
from typing import Any

import pytest

from testbed.conformance.results import Scope, count, describe, exit_code, is_narrowed, outdated, result_of
from testbed.models.report import DriverConformanceReport, Generated, KnownFailure, RequirementReport
from testbed.models.requirement_enums import Level, Result, Subject, Tier, Verdict
from testbed.models.run_request import FailOn, ReportedRequest

MUST, SHOULD, MAY = Level
Row = RequirementReport


def _row(verdict: Verdict | None, level: Level = MUST, about: Subject = Subject.DRIVER, **facts: Any) -> Row:
    return Row(id="T-001", sentence="", tier=Tier.E2E, source="", level=level, about=about, verdict=verdict, **facts)


def _rows(*verdicts: Verdict | None) -> list[Row]:
    return [_row(each) for each in verdicts]


def _code(rows: list[Row], profile: str = "full", **facts: Any) -> int:
    """Return the exit code of a run with these requirements."""
    judged = [row for row in rows if row.about is Subject.DRIVER]
    scope = Scope(**facts)
    report: dict[str, Any] = {
        "requirements": tuple(rows),
        "result": result_of(judged, scope),
        "profile": profile,
        "finished": scope.finished,
        "request": ReportedRequest(fail_on=scope.fail_on),
    }
    return exit_code(DriverConformanceReport.model_construct(**report))


@pytest.mark.parametrize(
    ("verdicts", "result", "code"),
    [
        ([Verdict.PASS, Verdict.NOT_APPLICABLE], Result.CONFORMANT, 0),
        ([Verdict.PASS, Verdict.CLUSTER_UNSUPPORTED], Result.PARTIAL, 0),
        ([Verdict.PASS, Verdict.EXCLUDED], Result.PARTIAL, 0),
        ([Verdict.PASS, Verdict.FAIL], Result.FAILED, 1),
        ([Verdict.PASS, Verdict.FLAKY], Result.INCOMPLETE, 4),
        ([Verdict.ERROR, Verdict.FAIL], Result.FAILED, 1),
        ([Verdict.PASS, Verdict.ERROR], Result.INCOMPLETE, 3),
        ([Verdict.PASS, Verdict.ERROR, Verdict.FLAKY], Result.INCOMPLETE, 3),
        ([Verdict.PASS, Verdict.TIMEOUT], Result.INCOMPLETE, 4),
        ([Verdict.PASS, Verdict.BLOCKED], Result.INCOMPLETE, 4),
        ([Verdict.PASS, None], Result.INCOMPLETE, 4),
    ],
)
def test_verdicts_decide_result_and_exit_code(verdicts: list[Verdict | None], result: Result, code: int) -> None:
    for order in itertools.permutations(verdicts):
        assert result_of(_rows(*order), Scope()) is result
        assert _code(_rows(*order)) == code


def test_two_judged_requirements_of_forty_are_partial() -> None:
    held = _rows(*[Verdict.PASS] * 2, *[Verdict.CLUSTER_UNSUPPORTED] * 38)
    assert result_of(held, Scope()) is Result.PARTIAL
    assert _code(held) == 0
    assert describe(count(held)) == "MUST 2 of 40"


def test_a_run_that_may_only_read_is_published() -> None:
    unjudged = _rows(*[Verdict.PASS] * 2, *[Verdict.CLUSTER_UNSUPPORTED] * 38)
    assert result_of(unjudged, Scope(read_only=True)) is Result.PUBLISHED
    assert _code(unjudged, read_only=True) == 0
    assert result_of([*unjudged, _row(Verdict.FAIL)], Scope(read_only=True)) is Result.FAILED
    assert result_of([*unjudged, _row(Verdict.ERROR)], Scope(read_only=True)) is Result.INCOMPLETE
    assert result_of([*unjudged, _row(Verdict.EXCLUDED)], Scope(read_only=True)) is Result.PARTIAL


@pytest.mark.parametrize("verdict", [Verdict.EXCLUDED, Verdict.CLUSTER_UNSUPPORTED])
def test_a_should_that_was_not_judged_does_not_make_the_run_partial(verdict: Verdict) -> None:
    assert result_of([_row(Verdict.PASS), _row(verdict, SHOULD)], Scope()) is Result.CONFORMANT


def test_a_narrowed_run_is_at_best_partial() -> None:
    assert result_of(_rows(Verdict.PASS), Scope(narrowed=True)) is Result.PARTIAL
    assert is_narrowed("smoke")
    assert is_narrowed("full", "CLAIM")
    assert not is_narrowed("core", "", None)


@pytest.mark.parametrize(
    ("fail_on", "level", "result", "code"),
    [
        ("must", MUST, Result.FAILED, 1),
        ("must", SHOULD, Result.CONFORMANT, 0),
        ("must", MAY, Result.CONFORMANT, 0),
        ("should", MUST, Result.FAILED, 1),
        ("should", SHOULD, Result.FAILED, 1),
        ("should", MAY, Result.CONFORMANT, 0),
        ("may", MAY, Result.FAILED, 1),
    ],
)
def test_fail_on_is_the_lowest_level_that_fails_a_run(fail_on: FailOn, level: Level, result: Result, code: int) -> None:
    rows = [_row(Verdict.PASS), _row(Verdict.FAIL, level)]
    assert result_of(rows, Scope(fail_on=fail_on)) is result
    assert _code(rows, fail_on=fail_on) == code
    assert _code([*rows, _row(None)], fail_on=fail_on) == (code or 4)


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.ERROR, Verdict.FLAKY, None])
def test_the_cluster_never_decides_the_exit_code_of_a_driver(verdict: Verdict | None) -> None:
    rows = [_row(Verdict.PASS), _row(verdict, about=Subject.CLUSTER)]
    assert _code(rows) == 0


def test_an_unfinished_run_is_never_conformant() -> None:
    assert result_of(_rows(Verdict.PASS), Scope(finished=False)) is Result.INCOMPLETE
    assert _code(_rows(Verdict.PASS), finished=False) == 4
    assert result_of(_rows(Verdict.FAIL), Scope(finished=False)) is Result.FAILED


def test_an_error_about_the_cluster_that_stopped_the_run_gives_exit_code_3() -> None:
    assert _code([_row(None), _row(Verdict.ERROR, about=Subject.CLUSTER)], finished=False) == 3


def test_a_run_without_any_tested_requirement_is_incomplete() -> None:
    assert result_of(_rows(Verdict.NOT_APPLICABLE), Scope(tested=False)) is Result.INCOMPLETE
    assert result_of([], Scope(tested=False)) is Result.INCOMPLETE
    assert result_of([], Scope(tested=False, read_only=True)) is Result.INCOMPLETE


@pytest.mark.parametrize("verdict", [each for each in Verdict if each not in (Verdict.PASS, Verdict.NOT_APPLICABLE)])
def test_only_one_verdict_besides_pass_allows_conformant(verdict: Verdict) -> None:
    assert result_of(_rows(Verdict.PASS, verdict), Scope()) is not Result.CONFORMANT


def test_the_counts_are_of_applicable_requirements() -> None:
    rows = [
        *_rows(Verdict.PASS, Verdict.EXCLUDED, Verdict.NOT_APPLICABLE, Verdict.FAIL),
        _row(Verdict.NOT_APPLICABLE, SHOULD, exempt=True),
        _row(Verdict.FAIL, SHOULD),
        _row(Verdict.PASS, MAY),
    ]
    judged = count(rows)
    assert (judged.must.passed, judged.must.applicable) == (1, 3)
    assert describe(judged) == "MUST 1 of 3, SHOULD 0 of 1, MAY 1 of 1, exempt 1"


def _known_code(*rows: Row, known: bool = True) -> int:
    report: dict[str, Any] = {
        "requirements": rows,
        "result": result_of(rows, Scope()),
        "profile": "full",
        "finished": True,
        "generated": Generated(at="2026-11-20T00:00:00+00:00", suite="", catalogue="", python="", pytest=""),
        "request": ReportedRequest(known=known),
    }
    return exit_code(DriverConformanceReport.model_construct(**report))


def test_known_failures_cost_no_exit_code_with_the_option_and_the_result_stays_failed() -> None:
    known = _row(Verdict.FAIL, known=KnownFailure(reason="the pool is ignored", until="2026-11-20"))
    assert _known_code(known) == 0
    assert _known_code(known, known=False) == 1
    assert _known_code(known, _row(Verdict.FAIL)) == 1
    assert _known_code(known, _row(Verdict.TIMEOUT)) == 4
    assert result_of([known], Scope()) is Result.FAILED


@pytest.mark.parametrize(("verdict", "until"), [(Verdict.PASS, ""), (Verdict.FAIL, "2026-11-19")])
def test_a_known_failure_that_passes_or_is_past_its_date_costs_the_exit_code(verdict: Verdict, until: str) -> None:
    row = _row(verdict, known=KnownFailure(reason="the pool is ignored", until=until))
    assert outdated(row, "2026-11-20T00:00:00+00:00").startswith("T-001 ")
    assert _known_code(row) == 1
