"""The pure parts of `tox -e mutants -- --dead`: which results need a reason, what is repeated, and the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.mutants import __main__ as program
from ci.mutants import dead, dead_page, dead_runs, known, page
from ci.mutants.dead import CASES, NO_ANSWER, UNJUDGED, MayPass, Reasons
from ci.mutants.dead_page import DEAD
from ci.mutants.digest import digest
from ci.mutants.matrix import MutantResult, State
from testbed.conformance import Requirement
from testbed.conformance.catalogue import Catalogue, Entry
from testbed.conformance.requirement import E2E, MUST
from testbed.models.report import RequirementReport
from testbed.models.requirement_enums import Subject, Verdict
from testbed.models.run_request import RunRequest

ONLY, REFUSES = "registers-only", "refuses-everything"


def entry(identity: str, about: Subject = Subject.DRIVER) -> Entry:
    return Entry(
        Requirement(identity, "It works.", MUST, E2E, "here", about=about), Path("/suites/a.py"), "test_it", ""
    )


FEW = Catalogue((entry("A-001"), entry("A-002"), entry("B-001", about=Subject.CLUSTER)))
MAY_PASS = Reasons(
    mayPass=(MayPass(mutants=(ONLY,), requirements=("A-002",), reason="It asks nothing of the driver."),)
)


def seen(result: str, requirement: str = "A-001", mutant: str = ONLY, by: str = "") -> MutantResult:
    return MutantResult(mutant, requirement, result, "why", digest=by)


def row(identity: str, verdict: Verdict) -> RequirementReport:
    named = {"id": identity, "sentence": "It works.", "level": MUST, "tier": E2E, "source": "here"}
    return RequirementReport.model_validate(
        {**named, "verdict": verdict, "message": "expected it to work\n  last seen: no"}
    )


def test_every_case_is_a_mutant() -> None:
    assert CASES.keys() <= known.every().keys()


def test_all_requirements_about_the_driver_run_on_each_case() -> None:
    planned = dead.plan(FEW)
    assert list(planned) == list(CASES)
    assert {tuple(each.requirement.id for each in found) for found in planned.values()} == {("A-001", "A-002")}
    assert {name: len(found) for name, found in dead.plan(FEW, [ONLY], "a-002").items()} == {ONLY: 1}
    assert dead.plan(FEW, ["no-env"]) == dead.plan(FEW, words="x-") == {}


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ("fail", ""),
        ("error", ""),
        ("timeout", ""),
        (UNJUDGED, ""),
        ("pass", "pass without a reason: A-001 on registers-only"),
        ("flaky", "flaky without a reason"),
        ("not-applicable", "not-applicable without a reason"),
        ("cluster-unsupported", "cluster-unsupported without a reason"),
        (NO_ANSWER, "no answer: A-001 on registers-only: why"),
    ],
)
def test_what_does_not_fail_on_a_dead_driver_needs_a_reason(result: str, problem: str) -> None:
    found = dead.unexplained([seen(result)], MAY_PASS.by_key())
    assert len(found) == bool(problem)
    assert problem in "".join(found)


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ("pass", ""),
        ("not-applicable", ""),
        ("fail", "fail instead of pass: A-002 on registers-only: remove it from dead.yaml"),
    ],
)
def test_a_reason_without_a_pass_is_a_problem(result: str, problem: str) -> None:
    found = dead.unexplained([seen(result, "A-002")], MAY_PASS.by_key())
    assert len(found) == bool(problem)
    assert problem in "".join(found)


def test_what_was_not_run_is_a_problem() -> None:
    planned = dead.plan(FEW, [ONLY])
    assert dead.problems(planned, {(ONLY, "A-001"): seen("fail")}, {}) == [
        "no answer: A-002 on registers-only: not run yet"
    ]


def test_what_has_no_answer_and_what_should_have_passed_is_repeated() -> None:
    results = [seen("fail"), seen(NO_ANSWER, "A-003"), seen("fail", "A-002")]
    assert dead.to_repeat(results, MAY_PASS.by_key()) == ["A-003", "A-002"]
    assert dead.to_repeat([seen("pass", "A-002")], MAY_PASS.by_key()) == []


@pytest.mark.parametrize(
    ("mutant", "verdict", "answer"),
    [
        (ONLY, Verdict.FAIL, "fail"),
        (ONLY, Verdict.PASS, "pass"),
        (ONLY, Verdict.BLOCKED, NO_ANSWER),
        (ONLY, None, NO_ANSWER),
        (ONLY, Verdict.ERROR, NO_ANSWER),
        (ONLY, Verdict.TIMEOUT, NO_ANSWER),
        ("test-pods-never-start", Verdict.ERROR, "error"),
        ("test-pods-never-start", Verdict.BLOCKED, NO_ANSWER),
    ],
)
def test_an_error_is_an_answer_only_where_the_cluster_is_wrong(
    mutant: str, verdict: Verdict | None, answer: str
) -> None:
    assert dead.answer_of(mutant, verdict) == answer


def test_the_list_of_reasons_names_only_what_exists() -> None:
    wrong = Reasons(mayPass=(MayPass(mutants=("no-env",), requirements=("A-001", "B-001"), reason="why"),))
    assert dead.mistakes(FEW, MAY_PASS) == []
    assert dead.mistakes(FEW, wrong) == [
        "dead.yaml: no requirement about the driver is called B-001",
        "dead.yaml: no case is called no-env",
    ]


def test_the_page_keeps_the_results_of_each_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead, "read", lambda: MAY_PASS)
    now = digest(entry("A-001"))
    first = dead_page.cells({}, [seen("fail", by=now), seen("pass", mutant=REFUSES, by=now)])
    text = page.render(FEW, first)
    assert f"| A-001 | {ONLY}: fail, {REFUSES}: pass | {now} |" in text
    assert "| A-002 | not run yet |  |" in text
    assert f"* A-002 (on `{ONLY}`): It asks nothing of the driver." in text
    assert page.render(FEW, page.parse(text)) == text
    later = dead_page.cells(page.parse(text), [seen("pass", by=now)])
    assert later == {(DEAD, "A-001"): (f"{ONLY}: pass, {REFUSES}: pass", now)}
    assert {key: each.result for key, each in dead_page.results(FEW, later).items()} == {
        (ONLY, "A-001"): "pass",
        (REFUSES, "A-001"): "pass",
    }


def test_results_of_a_case_are_dropped_when_the_test_changes() -> None:
    old = {(DEAD, "A-001"): (f"{ONLY}: pass", "0bad0bad")}
    now = digest(entry("A-001"))
    assert dead_page.results(FEW, old) == {}
    assert dead_page.cells(old, [seen("fail", mutant=REFUSES, by=now)]) == {(DEAD, "A-001"): (f"{REFUSES}: fail", now)}


def test_a_pass_on_the_page_without_a_reason_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "PAGE", tmp_path / "mutants.md")
    monkeypatch.setattr(dead, "read", Reasons)
    state, none = State(tmp_path / "dead.jsonl"), State(tmp_path / "none.jsonl")
    state.add([seen("pass", by=digest(entry("A-001")))])
    program.write(FEW, none, state)
    assert program.check(FEW) == 1
    assert "pass without a reason: A-001 on registers-only" in capsys.readouterr().err


def test_what_has_no_answer_is_repeated_alone_with_full_patience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[list[str], int | str, str, float]] = []

    def run_suites(request: RunRequest, entries: list[Entry]) -> dict[str, RequirementReport]:
        ids = [each.requirement.id for each in entries]
        asked.append((ids, request.workers, request.report.name, request.patience))
        verdicts = {"A-001": Verdict.FAIL, "A-002": Verdict.BLOCKED if len(asked) == 1 else Verdict.PASS}
        return {name: row(name, verdicts[name]) for name in ids}

    monkeypatch.setattr(dead_runs, "_rows", run_suites)
    state = State(tmp_path / "dead.jsonl")
    dead_runs._run_case("testbed", ONLY, dead.plan(FEW)[ONLY], state, tmp_path / "case", 0.1, {})
    assert asked == [(["A-001", "A-002"], dead_runs._WORKERS, "case", 0.1), (["A-002"], 0, "A-002", 1.0)]
    assert {name: (each.result, each.message) for (_, name), each in state.read().items()} == {
        "A-001": ("fail", "expected it to work"),
        "A-002": ("pass", "expected it to work"),
    }


def test_every_reason_is_a_sentence() -> None:
    assert all(each.reason.endswith(".") for each in dead.read().may_pass)
