"""The pure parts of `tox -e mutants`: the plan, which results count as caught, the file of results, the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ci.mutants import __main__ as program
from ci.mutants import dead, known, page
from ci.mutants.dead import Reasons
from ci.mutants.digest import digest
from ci.mutants.matrix import CAUGHT, CONTROL, SURVIVED, UNCLEAR, MutantResult, State, missing, plan, results
from testbed.conformance import Requirement
from testbed.conformance.catalogue import Catalogue, Entry
from testbed.conformance.requirement import E2E, MUST
from testbed.models.requirement_enums import Subject


@pytest.fixture(autouse=True)
def _without_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead, "read", Reasons)  # dead.yaml names requirements of the real catalogue


def entry(identity: str, *mutants: str, unproven: str = "", about: Subject = Subject.DRIVER) -> Entry:
    made = Requirement(identity, "It works.", MUST, E2E, "here", mutants=mutants, unproven=unproven, about=about)
    return Entry(made, Path("/suites/a.py"), "test_it", "")


FEW = Catalogue(
    (
        entry("A-001", "no-env"),
        entry("A-002", "unprepare-fails", "no-env"),
        entry("B-001", "gate-off:X", about=Subject.CLUSTER),
        entry("B-002", unproven="why not"),
    )
)


def planned(*mutants: str, words: str = "") -> dict[str, list[str]]:
    return {name: [each.requirement.id for each in found] for name, found in plan(FEW, list(mutants), words).items()}


def event(verdict: str, *, observed: bool = True, message: str = "no", case: str = "a") -> dict[str, Any]:
    failure = {"message": message if verdict != "pass" else "", "observed": observed and verdict != "pass"}
    return {"event": "test-finished", "id": "A-001", "test": case, "verdict": verdict, "seconds": 1.0, **failure}


def log(*finished: dict[str, Any], cases: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    tests = cases or tuple(each["test"] for each in finished)
    return [{"event": "selected", "requirements": [{"id": "A-001", "tests": tests}]}, *finished]


def judged(mutant: str, *finished: dict[str, Any], cases: tuple[str, ...] = ()) -> list[MutantResult]:
    return results(mutant, log(*finished, cases=cases), {"A-001": "1"})


def test_mutants_with_slow_recovery_come_late_and_those_with_their_own_testbed_last() -> None:
    assert list(planned().items()) == [
        ("no-env", ["A-001", "A-002"]),
        ("unprepare-fails", ["A-002"]),
        (CONTROL, ["A-001", "A-002", "B-001"]),
        ("gate-off:X", ["B-001"]),
    ]


def test_mutants_and_requirements_can_be_selected() -> None:
    assert planned("no-env") == {"no-env": ["A-001", "A-002"]}
    assert planned(CONTROL, "no-env") == {CONTROL: ["A-001", "A-002"], "no-env": ["A-001", "A-002"]}
    assert planned(words="b-0") == {CONTROL: ["B-001"], "gate-off:X": ["B-001"]}
    assert planned(CONTROL) == {CONTROL: ["A-001", "A-002", "B-001"]}


def test_pairs_with_a_result_on_the_page_can_be_skipped() -> None:
    now = digest(entry("A-001"))
    shown = {("no-env", "A-001"): ("caught: why", now), ("no-env", "A-002"): ("survived", now)}
    left = missing(plan(FEW), page.caught(page.render(FEW, shown)) | {("gate-off:X", "B-001", now)})
    assert {name: [each.requirement.id for each in found] for name, found in left.items()} == {
        "no-env": ["A-002"],
        "unprepare-fails": ["A-002"],
        CONTROL: ["A-002"],
    }


@pytest.mark.parametrize(
    ("seen", "result"),
    [
        (event("fail"), CAUGHT),
        (event("error"), CAUGHT),  # about the cluster: observed, but not the driver's fault
        (event("error", observed=False), UNCLEAR),
        (event("timeout", observed=False), UNCLEAR),
        (event("fail", message=" "), UNCLEAR),
        (event("pass"), SURVIVED),
    ],
)
def test_only_a_failure_by_an_observation_with_a_message_is_caught(seen: dict[str, Any], result: str) -> None:
    (found,) = judged("no-env", seen)
    assert (found.mutant, found.requirement, found.result) == ("no-env", "A-001", result)


def test_on_the_correct_driver_every_case_must_pass() -> None:
    assert [each.result for each in judged(CONTROL, event("pass"))] == [CAUGHT]
    assert [each.result for each in judged(CONTROL, event("pass"), event("fail", case="b"))] == [SURVIVED]


def test_a_requirement_has_no_result_until_all_its_cases_have_ended() -> None:
    assert judged("no-env", event("fail"), cases=("a", "b")) == []


def test_a_requirement_that_does_not_apply_to_this_testbed_is_not_proven() -> None:
    row = {"id": "A-001", "tests": ["a"], "verdict": "not-applicable", "reason": "no such feature"}
    selected = [{"event": "selected", "requirements": [row, {**row, "id": "A-002", "tests": []}]}]
    assert results("no-env", selected, {"A-001": "1"}) == [
        MutantResult("no-env", "A-001", UNCLEAR, "no such feature", digest="1")
    ]


def test_one_failed_case_is_enough_and_its_message_is_kept() -> None:
    message = "expected pod a to run\n  likely cause: none\n  last seen: Pending"
    (found,) = judged("no-env", event("pass"), event("fail", message=message, case="b"))
    assert (found.result, found.message) == (
        CAUGHT,
        "in 1 of 2 cases: expected pod a to run; likely cause: none; last seen: Pending",
    )


def test_the_message_of_a_plain_assert_has_the_assert() -> None:
    message = "assert None is True\n  requirement: A-001\n  test: a.py:3: assert x.get('y') is True"
    (found,) = judged("no-env", event("fail", message=message))
    assert found.message == "assert None is True; test: a.py:3: assert x.get('y') is True"


def test_the_last_of_several_results_counts(tmp_path: Path) -> None:
    state = State(tmp_path / "new" / "results.jsonl")
    assert state.read() == {}
    state.add([MutantResult("no-env", "A-001", UNCLEAR)])
    state.add([MutantResult("no-env", "A-001", CAUGHT, "why", 2.0)])
    assert state.read() == {("no-env", "A-001"): MutantResult("no-env", "A-001", CAUGHT, "why", 2.0)}


def test_only_results_of_the_plan_are_discarded(tmp_path: Path) -> None:
    state = State(tmp_path / "results.jsonl")
    state.discard({"no-env": [entry("A-001")]})
    rest = [MutantResult("no-env", "A-002", CAUGHT), MutantResult("other", "A-001", CAUGHT)]
    state.add([MutantResult("no-env", "A-001", CAUGHT), *rest])
    state.discard({"no-env": [entry("A-001")]})
    assert list(state.read().values()) == rest


def test_the_page_keeps_its_results() -> None:
    now = digest(entry("A-001"))
    shown = page.cells(
        [
            MutantResult("no-env", "A-001", CAUGHT, "expected a | b\nand more", digest=now),
            MutantResult(CONTROL, "A-001", CAUGHT),
        ]
    )
    text = page.render(FEW, shown)
    assert f"| A-001 | caught: expected a \\| b and more | {now} |" in text
    assert "| A-002 | not run yet |  |" in text
    assert "### `gate-off:X`\n\nThe feature gate X is off." in text
    assert "* B-002: why not" in text
    assert page.render(FEW, page.parse(text)) == text


def test_a_result_is_dropped_when_its_test_changes() -> None:
    stale = {("no-env", "A-001"): ("caught", "0bad0bad")}
    assert "| A-001 | not run since the test was rewritten |  |" in page.render(FEW, stale)


def test_a_stale_result_of_an_interrupted_run_does_not_replace_a_fresh_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "PAGE", tmp_path / "mutants.md")
    fresh = {("no-env", "A-001"): ("caught: why", digest(entry("A-001")))}
    program.PAGE.write_text(page.render(FEW, fresh))
    state = State(tmp_path / "results.jsonl")
    state.add([MutantResult("no-env", "A-001", SURVIVED, digest="0bad0bad")])
    program.write(FEW, state, State(tmp_path / "dead.jsonl"))
    assert page.parse(program.PAGE.read_text())["no-env", "A-001"] == fresh["no-env", "A-001"]


def test_a_page_that_does_not_match_the_suites_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "PAGE", tmp_path / "mutants.md")
    program.write(FEW, State(tmp_path / "none.jsonl"), State(tmp_path / "none.jsonl"))
    assert program.check(FEW) == 0
    assert program.check(Catalogue((*FEW.entries, entry("C-001", "no-env")))) == 1
    assert "python -m ci.mutants --write" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("mutants", "about", "problem"),
    [
        (("no-env",), Subject.DRIVER, ""),
        (("no-env", "labels-dropped"), Subject.DRIVER, ""),
        (("labels-dropped",), Subject.DRIVER, "C-001 is about the driver, but names no mutant of the driver"),
        (("labels-dropped", "gate-off:X"), Subject.CLUSTER, ""),
        (
            ("labels-dropped", "no-env"),
            Subject.CLUSTER,
            "C-001 is about the cluster, but names mutants of the driver: no-env",
        ),
        ((), Subject.CLUSTER, ""),
        (("gate-off:X",), Subject.CLUSTER, ""),
        (("no-such-mutant",), Subject.CLUSTER, "C-001 is about the cluster, but names no mutant of the cluster"),
        (("slices-missing", "no-env"), Subject.DRIVER, ""),
        (
            ("slices-missing", "labels-dropped"),
            Subject.DRIVER,
            "C-001 names only mutants of the driver that do nothing: slices-missing",
        ),
    ],
)
def test_the_mutants_of_a_requirement_are_of_its_subject(
    mutants: tuple[str, ...], about: Subject, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = entry("C-001", *mutants, about=about)

    assert known.subject_problem(found.requirement) == problem
    assert not problem or program.check(Catalogue((found,))) == 1
    assert problem in capsys.readouterr().err


def test_a_missing_result_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state, wanted = State(tmp_path / "results.jsonl"), plan(FEW, ["no-env"])
    state.add([MutantResult("no-env", "A-001", CAUGHT)])
    assert program.show(wanted, state) == 1
    state.add([MutantResult("no-env", "A-002", CAUGHT)])
    assert program.show(wanted, state) == 0
    assert "no-env" in capsys.readouterr().out


def test_a_requirement_that_could_not_run_is_repeated_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[list[str]] = []

    def once(_target: object, name: str, found: list[Entry], *_: object) -> list[MutantResult]:
        tried.append([each.requirement.id for each in found])
        return [MutantResult(name, each, CAUGHT if each == tried[-1][0] else UNCLEAR) for each in tried[-1]]

    monkeypatch.setattr(program, "_judge_once", once)
    nothing: Any = None
    program._judge(nothing, "no-env", list(FEW.entries[:2]), nothing, nothing)
    assert tried == [["A-001", "A-002"], ["A-002"]]


def test_the_drivers_that_do_nothing_prove_no_requirement() -> None:
    assert (dead.CASES.keys() & known.drivers().keys()) | {"slices-missing"} == known.DOING_NOTHING


def test_every_mutant_has_a_sentence() -> None:
    assert len(known.drivers()) >= 30
    assert all(about.endswith(".") and about[0].isupper() for about in known.every().values())
    assert not known.drivers().keys() & known.clusters().keys()


@pytest.mark.parametrize("path", sorted(known.CLUSTERS.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_mutant_of_the_cluster_is_one_policy_with_the_name_of_its_file(path: Path) -> None:
    policy, binding = yaml.safe_load_all(path.read_text())
    assert policy["metadata"]["name"] == binding["metadata"]["name"] == f"mutant-{path.stem}"
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert (
        policy["spec"]["failurePolicy"] == "Ignore"
    )  # so that a mistake in the policy does not look like a caught mutant


def test_every_mutant_of_the_cluster_is_tested_on_a_real_api_server() -> None:
    folder = Path(__file__).parents[1] / "e2e" / "cluster_mutants"
    text = "".join(path.read_text() for path in folder.glob("test_*.py"))
    assert [name for name in known.clusters() if f'"{name}"' not in text] == []
