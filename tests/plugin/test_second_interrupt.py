"""A second signal while a test cleans up after the first one."""

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
    run = judge(_INTERRUPTED.format(second=second, at_once=at_once), in_subprocess=True)
    assert "Traceback" not in run.output
    assert "INTERNALERROR" not in run.output
    return run


def test_a_signal_right_after_the_first_counts_as_the_first(judge: Judge, pytester: pytest.Pytester) -> None:
    run = _interrupted(judge, "SIGINT", 60)
    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    assert "interrupted: tests clean up first; on a second interrupt: ended at once" in run.output
    assert (pytester.path / "cleaned").exists()
    assert (run.folder / "report.yaml").exists()


def test_a_later_signal_ends_the_session_at_once(judge: Judge, pytester: pytest.Pytester) -> None:
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
def test_tests_clean_up_after_sigterm_and_sighup(
    judge: Judge, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup, SIGHUP is ignored
    try:
        run = judge(_SIGNALLED.format(number=number), in_subprocess=True)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    assert (pytester.path / "cleaned").exists()
    assert (run.report.finished, run.report.result) == (False, "incomplete")


def test_an_ignored_sighup_stays_ignored(judge: Judge) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run = judge(_SIGNALLED.format(number="SIGHUP"), in_subprocess=True)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert run.report.result == "conformant"


def test_an_interrupted_session_reports_that_no_requirement_was_tested_and_its_duration(judge: Judge) -> None:
    run = _interrupted(judge, "SIGINT", 60)
    assert run.report.reasons == (
        "the run did not finish",
        "T-001: no verdict",
        "no requirement was tested completely",
    )


def test_a_failure_is_in_the_report_after_quitting_the_debugger(judge: Judge, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        looker="import pdb\n\nclass Looker(pdb.Pdb):\n    def interaction(self, *_):\n        self.set_quit()\n"
    )
    run = judge(
        "@required(1)\ndef test_it(scenario):\n    assert 0\n", "--pdb", "--pdbcls=looker:Looker", in_subprocess=True
    )
    assert "1 failed" in run.output
    assert (run.verdicts, run.report.finished) == ({"T-001": "fail"}, False)
    assert not any("no requirement" in each for each in run.report.reasons)


@pytest.mark.parametrize(("tests", "finished"), [("first", True), ("second", False)])
def test_a_session_that_stops_at_a_failure_is_finished_only_if_no_test_is_left(
    judge: Judge, tests: str, finished: bool
) -> None:
    bad = "@required(1)\ndef test_bad():\n    assert 0\n\n"
    left = "@required(2)\ndef test_left():\n    pass\n" if tests == "second" else ""
    run = judge(bad + left, "-x")
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert run.report.finished is finished
    assert ("the run did not finish" in run.output) is not finished


@pytest.mark.parametrize(("second", "code"), [("SIGINT", pytest.ExitCode.INTERRUPTED), ("SIGTERM", -signal.SIGTERM)])
def test_dra_testbed_run_handles_the_signals_of_its_pytest(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, second: str, code: int
) -> None:
    monkeypatch.setenv(report_folder.RESERVED_BY, str(os.getpid()))
    run = _interrupted(judge, second, 60)
    assert run.result.ret == code
    assert "second interrupt" not in run.output


def test_pytest_exit_changes_no_signal_handler(judge: Judge) -> None:
    run = judge("@required(1)\ndef test_it():\n    pytest.exit('enough')\n", in_subprocess=True)
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


def test_the_next_session_deletes_objects_of_a_killed_session_before_its_tests(
    judge: Judge, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(_KILLED, in_subprocess=True)
    (lock,) = [each for each in (pytester.path / "sessions").iterdir() if "@" in each.name]
    left = _LEFT_THERE.replace("RUN", lock.name.partition("@")[0])
    monkeypatch.setattr("tests.plugin.conftest._CONFTEST", _CONFTEST + left)
    run = judge(
        "@required(1)\ndef test_it(world):\n    assert not world.kube.list('v1', 'Namespace')\n", in_subprocess=True
    )

    assert "deleted objects of a killed session: dra-t-001-left" in run.output
    assert run.verdicts == {"T-001": "pass"}
    assert [each.name for each in (pytester.path / "sessions").iterdir()] == [".gate"]
