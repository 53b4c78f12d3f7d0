"""The pure parts of `tox -e mutants`: the plan, what counts as caught, the file of results, the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ci.mutants import __main__ as program
from ci.mutants import known, page
from ci.mutants.digest import digest
from ci.mutants.matrix import CAUGHT, CONTROL, SURVIVED, UNCLEAR, Seen, State, missing, plan, results
from testbed.conformance import Requirement
from testbed.conformance.catalogue import Catalogue, Entry
from testbed.conformance.requirement import E2E, MUST


def entry(identity: str, *mutants: str, unproven: str = "") -> Entry:
    made = Requirement(identity, "It works.", MUST, E2E, "here", mutants=mutants, unproven=unproven)
    return Entry(made, Path("/suites/a.py"), "test_it", "")


FEW = Catalogue(
    (
        entry("A-001", "no-env"),
        entry("A-002", "unprepare-fails", "no-env"),
        entry("B-001", "gate-off:X"),
        entry("B-002", unproven="why not"),
    )
)


def planned(*mutants: str, words: str = "") -> dict[str, list[str]]:
    return {name: [each.requirement.id for each in found] for name, found in plan(FEW, list(mutants), words).items()}


def event(verdict: str, *, observed: bool = True, message: str = "no", case: str = "a") -> dict[str, Any]:
    told = {"message": message if verdict != "pass" else "", "observed": observed and verdict != "pass"}
    return {"event": "test-finished", "id": "A-001", "test": case, "verdict": verdict, "seconds": 1.0, **told}


def log(*finished: dict[str, Any], cases: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    tests = cases or tuple(each["test"] for each in finished)
    return [{"event": "selected", "requirements": [{"id": "A-001", "tests": tests}]}, *finished]


def judged(mutant: str, *finished: dict[str, Any], cases: tuple[str, ...] = ()) -> list[Seen]:
    return results(mutant, log(*finished, cases=cases), {"A-001": "1"})


def test_what_heals_slowly_comes_late_and_what_needs_another_testbed_last() -> None:
    assert list(planned().items()) == [
        ("no-env", ["A-001", "A-002"]),
        ("unprepare-fails", ["A-002"]),
        (CONTROL, ["A-001", "A-002", "B-001"]),
        ("gate-off:X", ["B-001"]),
    ]


def test_some_mutants_or_some_requirements_can_be_chosen() -> None:
    assert planned("no-env") == {"no-env": ["A-001", "A-002"]}
    assert planned(CONTROL, "no-env") == {CONTROL: ["A-001", "A-002"], "no-env": ["A-001", "A-002"]}
    assert planned(words="b-0") == {CONTROL: ["B-001"], "gate-off:X": ["B-001"]}
    assert planned(CONTROL) == {CONTROL: ["A-001", "A-002", "B-001"]}


def test_what_the_page_knows_already_can_be_left_out() -> None:
    now = digest(entry("A-001"))
    told = {("no-env", "A-001"): ("caught: why", now), ("no-env", "A-002"): ("survived", now)}
    left = missing(plan(FEW), page.caught(page.render(FEW, told)) | {("gate-off:X", "B-001", now)})
    assert {name: [each.requirement.id for each in found] for name, found in left.items()} == {
        "no-env": ["A-002"],
        "unprepare-fails": ["A-002"],
        CONTROL: ["A-002"],
    }


@pytest.mark.parametrize(
    ("seen", "result"),
    [
        (event("fail"), CAUGHT),
        (event("error"), CAUGHT),  # about the cluster: seen, but not the driver's fault
        (event("error", observed=False), UNCLEAR),
        (event("timeout", observed=False), UNCLEAR),
        (event("fail", message=" "), UNCLEAR),
        (event("pass"), SURVIVED),
    ],
)
def test_only_who_fails_by_what_he_saw_and_says_it_is_caught(seen: dict[str, Any], result: str) -> None:
    (found,) = judged("no-env", seen)
    assert (found.mutant, found.requirement, found.result) == ("no-env", "A-001", result)


def test_where_nothing_is_wrong_every_case_has_to_pass() -> None:
    assert [each.result for each in judged(CONTROL, event("pass"))] == [CAUGHT]
    assert [each.result for each in judged(CONTROL, event("pass"), event("fail", case="b"))] == [SURVIVED]


def test_a_requirement_whose_cases_have_not_all_ended_has_no_result_yet() -> None:
    assert judged("no-env", event("fail"), cases=("a", "b")) == []


def test_a_requirement_that_does_not_apply_to_this_testbed_is_not_proven() -> None:
    row = {"id": "A-001", "tests": ["a"], "verdict": "not-applicable", "reason": "no such feature"}
    selected = [{"event": "selected", "requirements": [row, {**row, "id": "A-002", "tests": []}]}]
    assert results("no-env", selected, {"A-001": "1"}) == [
        Seen("no-env", "A-001", UNCLEAR, "no such feature", digest="1")
    ]


def test_one_case_of_several_is_enough_and_its_words_are_kept() -> None:
    said = "expected pod a to run\n  likely cause: none\n  last seen: Pending"
    (found,) = judged("no-env", event("pass"), event("fail", message=said, case="b"))
    assert (found.result, found.message) == (
        CAUGHT,
        "in 1 of 2 cases: expected pod a to run; likely cause: none; last seen: Pending",
    )


def test_of_a_plain_comparison_the_line_that_makes_it_is_kept_too() -> None:
    said = "assert None is True\n  requirement: A-001\n  test: a.py:3: assert x.get('y') is True"
    (found,) = judged("no-env", event("fail", message=said))
    assert found.message == "assert None is True; test: a.py:3: assert x.get('y') is True"


def test_results_are_found_again_and_the_last_one_counts(tmp_path: Path) -> None:
    state = State(tmp_path / "new" / "results.jsonl")
    assert state.read() == {}
    state.add([Seen("no-env", "A-001", UNCLEAR)])
    state.add([Seen("no-env", "A-001", CAUGHT, "why", 2.0)])
    assert state.read() == {("no-env", "A-001"): Seen("no-env", "A-001", CAUGHT, "why", 2.0)}


def test_the_page_remembers_what_was_seen() -> None:
    now = digest(entry("A-001"))
    told = page.told(
        [Seen("no-env", "A-001", CAUGHT, "expected a | b\nand more", digest=now), Seen(CONTROL, "A-001", CAUGHT)]
    )
    text = page.render(FEW, told)
    assert f"| A-001 | caught: expected a \\| b and more | {now} |" in text
    assert "| A-002 | not run yet |  |" in text
    assert "### `gate-off:X`\n\nThe feature gate X is off." in text
    assert "* B-002: why not" in text
    assert page.render(FEW, page.remembered(text)) == text


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
    state.add([Seen("no-env", "A-001", SURVIVED, digest="0bad0bad")])
    program.write(FEW, state)
    assert page.remembered(program.PAGE.read_text())["no-env", "A-001"] == fresh["no-env", "A-001"]


def test_a_page_about_other_suites_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "PAGE", tmp_path / "mutants.md")
    program.write(FEW, State(tmp_path / "none.jsonl"))
    assert program.check(FEW) == 0
    assert program.check(Catalogue((*FEW.entries, entry("C-001", "no-env")))) == 1
    assert "python -m ci.mutants --write" in capsys.readouterr().err


def test_a_requirement_that_survived_or_was_not_run_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, wanted = State(tmp_path / "results.jsonl"), plan(FEW, ["no-env"])
    state.add([Seen("no-env", "A-001", CAUGHT)])
    assert program.show(wanted, state) == 1
    state.add([Seen("no-env", "A-002", CAUGHT)])
    assert program.show(wanted, state) == 0
    assert "no-env" in capsys.readouterr().out


def test_what_another_test_kept_from_running_is_run_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[list[str]] = []

    def once(_victim: object, name: str, found: list[Entry], *_: object) -> list[Seen]:
        tried.append([each.requirement.id for each in found])
        return [Seen(name, each, CAUGHT if each == tried[-1][0] else UNCLEAR) for each in tried[-1]]

    monkeypatch.setattr(program, "_judge_once", once)
    nothing: Any = None
    program._judge(nothing, "no-env", list(FEW.entries[:2]), nothing, nothing)
    assert tried == [["A-001", "A-002"], ["A-002"]]


def test_every_mutant_says_in_a_sentence_what_is_wrong() -> None:
    assert len(known.drivers()) >= 30
    assert all(about.endswith(".") and about[0].isupper() for about in known.every().values())
    assert not known.drivers().keys() & known.clusters().keys()


@pytest.mark.parametrize("path", sorted(known.CLUSTERS.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_mutant_of_the_cluster_is_one_policy_that_is_named_like_its_file(path: Path) -> None:
    policy, binding = yaml.safe_load_all(path.read_text())
    assert policy["metadata"]["name"] == binding["metadata"]["name"] == f"mutant-{path.stem}"
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert policy["spec"]["failurePolicy"] == "Ignore"  # a mistake in it is a survivor, not a refusal


def test_every_mutant_of_the_cluster_is_tried_on_a_real_api_server() -> None:
    text = (Path(__file__).parents[1] / "e2e" / "commands" / "test_wrong_clusters.py").read_text()
    assert [name for name in known.clusters() if f'"{name}"' not in text] == []
