"""The table of pairs fits the catalogue, the mutants and the components, and outcomes are compared with what it allows."""

from __future__ import annotations

import pytest

from ci.judge import command, foreign_slices, page
from ci.judge.faults import Freeze, Kill
from ci.judge.moments import CHECKS, STARTED, Moment
from ci.judge.outcome import NONE, RIGHT, UNCLEAR, WRONG, Outcome, compare, verdicts
from ci.judge.pairs import JUDGED_RIGHT, NEVER_FAIL, NEVER_PASS, PAIRS, Pair
from ci.mutants import known
from testbed import folders
from testbed.conformance import catalogue
from testbed.errors import UsageError
from testbed.models.requirement_enums import Subject, Verdict

COMPONENTS = {"kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd", "kubelet", "containerd"}
CATALOGUE = {each.requirement.id: each.requirement for each in catalogue.read([folders.data("suites")]).entries}
each_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)


def made(driver: str = "", **expected: frozenset[str]) -> Pair:
    names = {name.replace("_", "-"): allowed for name, allowed in expected.items()}
    return Pair("a-pair", Kill("etcd"), names, "Why.", Moment("A-001"), driver)


def test_there_are_twenty_pairs_and_three_fast_ones_of_both_kinds() -> None:
    assert len({pair.name for pair in PAIRS}) == len(PAIRS) >= 20
    fast = [pair for pair in PAIRS if pair.fast]
    assert len(fast) == 3
    assert {bool(pair.driver) for pair in fast} == {True, False}
    assert {pair.fault.component for pair in PAIRS if isinstance(pair.fault, Kill)} == COMPONENTS
    assert {pair.fault.component for pair in PAIRS if isinstance(pair.fault, Freeze)} == COMPONENTS


@each_pair
def test_a_pair_judges_requirements_about_the_driver(pair: Pair) -> None:
    assert [name for name in pair.expected if CATALOGUE[name].about is not Subject.DRIVER] == []
    assert pair.why.endswith(".")


@each_pair
def test_no_correct_driver_may_fail_and_no_wrong_one_may_pass(pair: Pair) -> None:
    forbidden = {"pass", "flaky"} if pair.driver else {"fail"}
    assert all(not allowed & forbidden and allowed <= set(Verdict) for allowed in pair.expected.values())


@each_pair
def test_a_wrong_driver_is_a_mutant_that_the_requirements_name(pair: Pair) -> None:
    assert not pair.driver or pair.driver in known.drivers()
    assert not pair.driver or all(pair.driver in CATALOGUE[name].mutants for name in pair.expected)


@each_pair
def test_a_fault_hits_a_component_in_the_test_of_one_of_the_requirements(pair: Pair) -> None:
    if isinstance(pair.fault, Kill | Freeze):
        assert pair.fault.component in COMPONENTS
        assert pair.when is not None
        assert pair.when.requirement in pair.expected
        assert pair.when.state in (STARTED, *CHECKS)
    else:
        assert pair.when is None


def test_a_verdict_that_is_not_allowed_is_wrong() -> None:
    pair = made(A_001=NEVER_FAIL, B_001=JUDGED_RIGHT)
    assert compare(pair, {"A-001": "error", "B-001": "pass"}, happened=True).result == RIGHT
    failed = compare(pair, {"A-001": "fail", "B-001": "pass"}, happened=True)
    assert (failed.result, failed.seen) == (WRONG, "A-001 fail (not allowed), B-001 pass")
    assert compare(made("no-env", A_001=NEVER_PASS), {"A-001": "flaky"}, happened=True).result == WRONG


def test_no_verdict_is_wrong_and_a_fault_without_effect_proves_nothing() -> None:
    pair = made(A_001=NEVER_FAIL)
    assert compare(pair, {}, happened=True).seen == "A-001 no verdict (not allowed)"
    assert compare(pair, {"A-001": "pass"}, happened=False).result == UNCLEAR
    assert compare(pair, {"A-001": "fail"}, happened=False).result == WRONG


def test_the_verdicts_of_a_report() -> None:
    report = {"requirements": [{"id": "A-001", "verdict": "pass"}, {"id": "A-002", "verdict": None}]}
    assert verdicts(report) == {"A-001": "pass", "A-002": NONE}


def test_the_section_keeps_the_outcomes_of_pairs_that_did_not_change() -> None:
    pair = made(A_001=NEVER_FAIL)
    text = page.section(page.cells([Outcome("a-pair", RIGHT, "A-001 error", 3.0, pair.digest)]), [pair])
    assert (
        "| `a-pair` | etcd is killed, when the test of A-001 has started | correct | A-001 does not fail. Why. |"
        in text
    )
    assert f"| right: A-001 error | {pair.digest} |" in text
    assert page.section(page.parse(text), [pair]) == text
    assert "| not run yet |  |" in page.section(page.parse(text), [made(A_001=JUDGED_RIGHT)])


def test_pairs_are_chosen_by_name_and_speed() -> None:
    assert command.choose([]) == list(PAIRS)
    assert [pair.name for pair in command.choose(["scheduler-killed"])] == ["scheduler-killed"]
    assert all(pair.fast for pair in command.choose([], fast=True))
    with pytest.raises(UsageError, match="there is no pair scheduler-kiled"):
        command.choose(["scheduler-kiled"])


def test_foreign_slices_contradict_each_other_and_are_of_a_driver_that_is_not_judged() -> None:
    first, second = (each["spec"] for each in foreign_slices.SLICES)
    assert first["devices"] == second["devices"]
    assert first["pool"]["name"] == second["pool"]["name"]
    assert first["pool"]["resourceSliceCount"] != second["pool"]["resourceSliceCount"]
    assert first["driver"] == second["driver"] not in ("gpu.dra-testbed.example", "nic.dra-testbed.example")
