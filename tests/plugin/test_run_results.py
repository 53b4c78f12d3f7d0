"""The result of a run, its exit code and its report depend on what was selected and judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from testbed.conformance.events import read
from tests.plugin.example_suites import GOOD

Judge = Callable[..., Any]


def test_a_must_that_the_cluster_does_not_support_makes_the_run_partial(judge: Judge) -> None:
    run = judge(GOOD + "@required(2, needs=(Capability.REBOOT_NODE,))\ndef test_reboot():\n    assert 0\n")
    assert run.verdicts == {"T-001": "pass", "T-002": "cluster-unsupported"}
    assert run.row("T-002").message == "the cluster, or --allow, does not support reboot-node"
    assert (run.report.result, run.result.ret) == ("partial", 0)


def test_a_test_that_skips_itself_is_not_green(judge: Judge) -> None:
    run = judge("@required(1)\ndef test_it():\n    pytest.skip('not today')\n")
    assert run.verdicts == {"T-001": "error"}
    assert run.result.ret == 3


@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan"])
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_test_whose_body_does_not_run_is_not_green(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, option: str, workers: str
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", option)
    run = judge("@required(1)\ndef test_it():\n    assert 0\n", "-n", workers, in_subprocess=True)
    assert run.verdicts == {"T-001": "error"}
    assert run.row("T-001").message.startswith("pytest did not run the body of the test (--setup-only")
    assert run.result.ret == 3


_NOTHING = """
@required(3)
def test_parts(scenario):
    from testbed.errors import NothingToJudge
    raise NothingToJudge("no parts of a device exclude each other", hint="look")
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_test_that_finds_nothing_to_judge_does_not_change_the_result(judge: Judge, workers: str) -> None:
    run = judge(GOOD + _NOTHING, "-n", workers, "--reruns", "1", in_subprocess=True)
    assert run.verdicts == {"T-001": "pass", "T-003": "not-applicable"}
    assert run.row("T-003").message == "no parts of a device exclude each other\n  try: look"
    assert (run.row("T-003").attempts, run.report.result, run.result.ret) == (1, "conformant", 0)


def test_a_run_in_which_all_tests_found_nothing_to_judge_is_not_green(judge: Judge) -> None:
    run = judge(_NOTHING)
    assert run.report.reasons == ("no requirement was tested",)
    assert run.result.ret == 4


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.parametrize("words", [("-k", "NOSUCH"), ("-m", "nosuch")], ids=["k", "m"])
def test_a_selection_that_matches_no_test_keeps_the_report_of_an_earlier_run(
    judge: Judge, words: tuple[str, str], workers: str
) -> None:
    red = judge(f"{GOOD}\n    assert 0\n")
    assert red.verdicts == {"T-001": "fail"}
    again = judge(GOOD, *words, "-n", workers, in_subprocess=True)
    assert again.verdicts == {"T-001": "fail"}
    assert f"{words[0]} '{words[1]}' matches no test" in again.output
    assert again.result.ret == 4


@pytest.mark.parametrize("suite", ["", "def test_of_another_project():\n    pass\n"], ids=["empty", "others"])
def test_a_run_begins_once_even_if_workers_collect_no_requirement(judge: Judge, suite: str) -> None:
    run = judge(suite, "-n", "2", in_subprocess=True)
    assert [each["event"] for each in read(run.folder)] == ["run-started", "selected", "run-finished"]
    assert run.report.reasons == ("no requirement was tested",)
    assert run.result.ret == 4


def test_a_run_that_judged_nothing_is_not_green(judge: Judge) -> None:
    run = judge("@required(1, kubernetes='1.99')\ndef test_it():\n    pass\n")
    assert run.verdicts == {"T-001": "not-applicable"}
    assert run.result.ret == 4


def test_what_was_not_selected_makes_the_run_partial(judge: Judge) -> None:
    run = judge(GOOD + "@required(2)\ndef test_other():\n    pass\n", "-k", "other")
    assert run.verdicts == {"T-001": "excluded", "T-002": "pass"}
    assert run.report.result == "partial"


def test_tiers_and_levels_can_be_selected(judge: Judge) -> None:
    tests = "@required(1, tier=WIRE)\ndef test_a():\n    pass\n\n@required(2, level=SHOULD)\ndef test_b():\n    pass\n"
    assert judge(tests, "--tier", "wire").verdicts == {"T-001": "pass", "T-002": "excluded"}
    assert judge(tests, "-m", "should").verdicts == {"T-001": "excluded", "T-002": "pass"}


_FAILS = "@required(1)\ndef test_a():\n    pass\n\n@required(2, level=SHOULD)\ndef test_b():\n    assert 0\n"


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
@pytest.mark.parametrize(("fail_on", "code"), [("must", 0), ("should", 1)])
def test_fail_on_decides_the_exit_code_and_is_in_the_report(
    judge: Judge, fail_on: str, code: int, workers: tuple[str, ...]
) -> None:
    run = judge(_FAILS, "--fail-on", fail_on, *workers)
    assert (run.result.ret, run.report.request.fail_on) == (code, fail_on)
    assert run.verdicts == {"T-001": "pass", "T-002": "fail"}
    assert run.report.result == ("failed" if code else "conformant")
    assert "SHOULD 0 of 1 (1 pass, 1 fail)" in run.output


def test_fail_on_is_about_requirements_only(judge: Judge) -> None:
    assert judge(_FAILS + "\ndef test_other():\n    assert 0\n", "--fail-on", "must").result.ret == 1


def test_tests_after_the_first_failure_with_x_have_no_verdict(judge: Judge) -> None:
    run = judge("@required(1)\ndef test_a():\n    assert 0\n\n@required(2)\ndef test_b():\n    pass\n", "-x")
    assert run.verdicts == {"T-001": "fail", "T-002": None}


def test_the_note_of_a_test_that_passed_is_in_the_report(judge: Callable[..., Any]) -> None:
    ran = judge(
        """
@required(1)
def test_good(scenario, request):
    request.node.user_properties.append(("note", "5 pods ran"))
"""
    )
    assert (ran.verdicts, ran.row("T-001").message) == ({"T-001": "pass"}, "5 pods ran")
