"""A second interrupt that comes while a test cleans up after the first one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from testbed.conformance import report_folder
from tests.plugin.conftest import _CONFTEST

Judge = Callable[..., Any]
_INTERRUPTED = """
import signal
from testbed import interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)
interrupts._SAME_INTERRUPT = {at_once}

@pytest.fixture
def cleaned(pytestconfig):
    yield
    signal.raise_signal(signal.{second})
    (pytestconfig.rootpath / "cleaned").touch()

@required(1)
def test_it(cleaned):
    signal.raise_signal(signal.SIGINT)
"""


def _interrupted(judge: Judge, second: str, at_once: float) -> Any:
    run = judge(_INTERRUPTED.format(second=second, at_once=at_once), apart=True)
    assert "Traceback" not in run.output
    assert "INTERNALERROR" not in run.output
    return run


def test_one_that_comes_with_the_first_is_the_same(judge: Judge, pytester: pytest.Pytester) -> None:
    run = _interrupted(judge, "SIGINT", 60)
    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    assert "interrupted: tests clean up first; on a second interrupt: ended at once" in run.output
    assert (pytester.path / "cleaned").exists()
    assert (run.folder / "report.yaml").exists()


def test_a_later_one_ends_everything_at_once(judge: Judge, pytester: pytest.Pytester) -> None:
    run = _interrupted(judge, "SIGINT", 0)
    assert run.result.ret == -signal.SIGINT
    assert not (pytester.path / "cleaned").exists()


_SIGNALLED = """
import signal

@pytest.fixture
def cleaned(pytestconfig):
    yield
    (pytestconfig.rootpath / "cleaned").touch()

@required(1)
def test_it(cleaned):
    signal.raise_signal(signal.{number})
"""


@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP"])
def test_who_is_ended_or_whose_terminal_is_closed_cleans_up(
    judge: Judge, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests under nohup is deaf to it
    try:
        run = judge(_SIGNALLED.format(number=number), apart=True)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    assert (pytester.path / "cleaned").exists()
    assert (run.report.finished, run.report.result) == (False, "incomplete")


def test_who_is_deaf_to_a_closed_terminal_stays_so(judge: Judge) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run = judge(_SIGNALLED.format(number="SIGHUP"), apart=True)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert run.report.result == "conformant"


def test_an_interrupted_session_says_that_nothing_was_tested_to_its_end_and_how_long_it_took(judge: Judge) -> None:
    run = _interrupted(judge, "SIGINT", 60)
    assert run.report.reasons == (
        "the run did not come to its end",
        "T-001: no verdict",
        "no requirement was tested to its end",
    )


def test_who_leaves_the_debugger_has_a_failure_in_the_report(judge: Judge, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        looker="import pdb\n\nclass Looker(pdb.Pdb):\n    def interaction(self, *_):\n        self.set_quit()\n"
    )
    run = judge("@required(1)\ndef test_it(scenario):\n    assert 0\n", "--pdb", "--pdbcls=looker:Looker", apart=True)
    assert "1 failed" in run.output
    assert (run.verdicts, run.report.finished) == ({"T-001": "fail"}, False)
    assert not any("no requirement" in each for each in run.report.reasons)


@pytest.mark.parametrize(("tests", "finished"), [("first", True), ("second", False)])
def test_who_stops_at_the_first_failure_has_a_run_that_came_to_its_end_only_where_nothing_was_left(
    judge: Judge, tests: str, finished: bool
) -> None:
    bad = "@required(1)\ndef test_bad():\n    assert 0\n\n"
    left = "@required(2)\ndef test_left():\n    pass\n" if tests == "second" else ""
    run = judge(bad + left, "-x")
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert run.report.finished is finished
    assert ("the run did not come to its end" in run.output) is not finished


@pytest.mark.parametrize(("second", "code"), [("SIGINT", pytest.ExitCode.INTERRUPTED), ("SIGTERM", -signal.SIGTERM)])
def test_under_run_it_is_run_who_answers_and_says_when_to_end(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, second: str, code: int
) -> None:
    monkeypatch.setenv(report_folder.RESERVED_BY, str(os.getpid()))
    run = _interrupted(judge, second, 60)
    assert run.result.ret == code
    assert "second interrupt" not in run.output


def test_an_end_that_nobody_asked_for_by_a_signal_changes_no_signal(judge: Judge) -> None:
    run = judge("@required(1)\ndef test_it():\n    pytest.exit('enough')\n", apart=True)
    assert "second interrupt" not in run.output


_KILLED = """
@required(1)
def test_it(scenario, pytestconfig):
    (pytestconfig.rootpath / "left").write_text(scenario.namespace)
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
"""
_LEFT_THERE = """
words = {{**made.owner.mark({{"metadata": {{}}}})["metadata"]["labels"], "dra-testbed.example/process": "RUN-main"}}
made.kube.put("Namespace", "dra-t-001-left", metadata={{"labels": words}})
"""


def test_what_a_killed_session_left_is_deleted_by_the_next_one_before_it_tests(
    judge: Judge, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(_KILLED, apart=True)
    (lock,) = [each for each in (pytester.path / "sessions").iterdir() if "@" in each.name]
    left = _LEFT_THERE.replace("RUN", lock.name.partition("@")[0])
    monkeypatch.setattr("tests.plugin.conftest._CONFTEST", _CONFTEST + left)
    run = judge("@required(1)\ndef test_it(world):\n    assert not world.kube.list('v1', 'Namespace')\n", apart=True)

    assert "deleted objects of a killed session: dra-t-001-left" in run.output
    assert run.verdicts == {"T-001": "pass"}
    assert [each.name for each in (pytester.path / "sessions").iterdir()] == [".gate"]
