from __future__ import annotations

import itertools
from typing import Any

import pytest

from testbed.conformance.verdicts import (
    Judged,
    exit_code,
    is_observation,
    result_of,
    verdict_for,
    verdict_of_attempts,
    worst,
)
from testbed.errors import ApiError, CommandFailed, DriverFailed, NothingToJudge, TestbedError, WaitTimeout
from testbed.models.report import DriverConformanceReport, RequirementReport
from testbed.models.requirement_enums import Level, Result, Subject, Verdict
from testbed.models.run_request import FailOn, ReportedRequest
from testbed.vocabulary.observing.observation import NotObserved

MUST, SHOULD, MAY = Level
FREE = [Verdict.NOT_APPLICABLE, Verdict.CLUSTER_UNSUPPORTED]


def _code(judged: list[Judged], *, finished: bool = True, fail_on: FailOn = "may") -> int:
    rows: list[dict[str, Any]] = [{"level": each.level, "verdict": each.verdict} for each in judged]
    facts: dict[str, Any] = {
        "requirements": tuple(RequirementReport.model_construct(**row) for row in rows),
        "result": result_of(judged, finished=finished),
        "request": ReportedRequest(fail_on=fail_on),
    }
    return exit_code(DriverConformanceReport.model_construct(**facts))


def _must(*verdicts: Verdict | None) -> list[Judged]:
    return [Judged(MUST, verdict) for verdict in verdicts]


@pytest.mark.parametrize("raised", [AssertionError("no"), DriverFailed("no"), NotObserved("no")])
def test_assertions_and_missing_observations_blame_the_driver(raised: Exception) -> None:
    assert verdict_for(raised) is Verdict.FAIL
    assert verdict_for(raised, before_the_test=True) is Verdict.BLOCKED


@pytest.mark.parametrize("raised", [AssertionError("no"), DriverFailed("no"), NotObserved("no")])
def test_observations_differ_from_errors(raised: Exception) -> None:
    assert is_observation(raised)
    assert not is_observation(ApiError("GET /", 0, "", "no answer"))


@pytest.mark.parametrize("raised", [AssertionError("no"), DriverFailed("no"), NotObserved("no")])
def test_a_failed_requirement_about_the_cluster_never_blames_the_driver(raised: Exception) -> None:
    assert verdict_for(raised, Subject.CLUSTER) is Verdict.ERROR
    assert verdict_for(raised, Subject.CLUSTER, before_the_test=True) is Verdict.BLOCKED


@pytest.mark.parametrize(
    "raised",
    [
        ApiError("GET /", 0, "", "refused"),
        ApiError("GET /", 500, "", "broken"),
        CommandFailed(["x"], "exit 1", ""),
        WaitTimeout("image", "1 s", "nothing"),
        TestbedError("?"),
        KeyError("x"),
        OSError("disk"),
        MemoryError(),
    ],
)
def test_everything_else_is_an_error(raised: Exception) -> None:
    assert verdict_for(raised) is Verdict.ERROR
    assert verdict_for(raised, before_the_test=True) is Verdict.ERROR


def test_a_test_that_pytest_timeout_stopped_is_a_timeout() -> None:
    assert verdict_for(pytest.fail.Exception("Timeout (>300.0s) from pytest-timeout.")) is Verdict.TIMEOUT


def test_a_failure_before_a_pass_is_flaky() -> None:
    assert verdict_of_attempts([Verdict.FAIL, Verdict.PASS]) is Verdict.FLAKY
    assert verdict_of_attempts([Verdict.ERROR, Verdict.PASS]) is Verdict.PASS
    assert verdict_of_attempts([Verdict.PASS, Verdict.FAIL]) is Verdict.FAIL
    assert verdict_of_attempts([Verdict.PASS]) is Verdict.PASS


def test_an_error_does_not_hide_a_failure() -> None:
    assert verdict_of_attempts([Verdict.FAIL, Verdict.ERROR]) is Verdict.FAIL
    assert verdict_of_attempts([Verdict.FAIL, Verdict.TIMEOUT, Verdict.BLOCKED]) is Verdict.FAIL
    assert verdict_of_attempts([Verdict.FAIL, Verdict.ERROR, Verdict.PASS]) is Verdict.FLAKY
    assert verdict_of_attempts([Verdict.ERROR, Verdict.TIMEOUT]) is Verdict.TIMEOUT


def test_a_test_that_finds_nothing_to_judge_is_not_applicable() -> None:
    for about in Subject:
        assert verdict_for(NothingToJudge("no parts"), about) is Verdict.NOT_APPLICABLE
        assert verdict_for(NothingToJudge("no parts"), about, before_the_test=True) is Verdict.NOT_APPLICABLE
    assert not is_observation(NothingToJudge("no parts"))
    assert worst([Verdict.PASS, Verdict.NOT_APPLICABLE]) is Verdict.NOT_APPLICABLE
    assert worst([Verdict.FLAKY, Verdict.NOT_APPLICABLE]) is Verdict.FLAKY


def test_a_failure_is_the_worst_verdict_and_a_pass_the_best() -> None:
    tried = [Verdict.PASS, Verdict.FAIL, Verdict.ERROR, Verdict.TIMEOUT, Verdict.BLOCKED, Verdict.FLAKY]
    assert worst(tried) is Verdict.FAIL
    for verdict in tried:
        assert worst([verdict, Verdict.PASS]) is verdict


@pytest.mark.parametrize(
    ("verdicts", "result", "code"),
    [
        ([Verdict.PASS, *FREE], Result.CONFORMANT, 0),
        ([Verdict.PASS, Verdict.EXCLUDED], Result.PARTIAL, 0),
        ([Verdict.PASS, Verdict.FAIL], Result.NON_CONFORMANT, 1),
        ([Verdict.PASS, Verdict.FLAKY], Result.NON_CONFORMANT, 1),
        ([Verdict.ERROR, Verdict.FAIL], Result.NON_CONFORMANT, 1),
        ([Verdict.PASS, Verdict.ERROR], Result.INCOMPLETE, 3),
        ([Verdict.PASS, Verdict.TIMEOUT], Result.INCOMPLETE, 4),
        ([Verdict.PASS, Verdict.BLOCKED], Result.INCOMPLETE, 4),
        ([Verdict.PASS, None], Result.INCOMPLETE, 4),
        ([], Result.INCOMPLETE, 4),
        (FREE, Result.INCOMPLETE, 4),
        ([Verdict.EXCLUDED], Result.INCOMPLETE, 4),
    ],
)
def test_verdicts_decide_result_and_exit_code(verdicts: list[Verdict | None], result: Result, code: int) -> None:
    for order in itertools.permutations(verdicts):
        assert result_of(_must(*order)) is result
        assert _code(_must(*order)) == code


def test_a_failed_should_makes_the_run_partial_with_exit_code_1() -> None:
    for level in (SHOULD, MAY):
        judged = [Judged(MUST, Verdict.PASS), Judged(level, Verdict.FAIL)]
        assert result_of(judged) is Result.PARTIAL
        assert _code(judged) == 1


@pytest.mark.parametrize(
    ("fail_on", "level", "code"),
    [
        ("must", MUST, 1),
        ("must", SHOULD, 0),
        ("must", MAY, 0),
        ("should", MUST, 1),
        ("should", SHOULD, 1),
        ("should", MAY, 0),
        ("may", MAY, 1),
    ],
)
def test_a_failure_below_the_level_of_fail_on_does_not_change_the_exit_code(
    fail_on: FailOn, level: Level, code: int
) -> None:
    assert _code([Judged(MUST, Verdict.PASS), Judged(level, Verdict.FAIL)], fail_on=fail_on) == code
    assert _code([Judged(MUST, None), Judged(level, Verdict.FLAKY)], fail_on=fail_on) == (code or 4)


def test_a_run_is_partial_if_only_some_cases_of_a_requirement_ran() -> None:
    assert result_of([Judged(MUST, Verdict.EXCLUDED, tested=True)]) is Result.PARTIAL


def test_an_unfinished_run_is_never_conformant() -> None:
    assert result_of(_must(Verdict.PASS), finished=False) is Result.INCOMPLETE
    assert _code(_must(Verdict.PASS), finished=False) == 4
    assert result_of(_must(Verdict.FAIL), finished=False) is Result.NON_CONFORMANT


@pytest.mark.parametrize("verdict", [each for each in Verdict if each not in (Verdict.PASS, *FREE)])
def test_only_two_verdicts_besides_pass_allow_conformant(verdict: Verdict) -> None:
    assert result_of(_must(Verdict.PASS, verdict)) is not Result.CONFORMANT
