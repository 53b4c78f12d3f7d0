"""A second interrupt that comes while a test cleans up after the first one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from testbed.conformance import events

Judge = Callable[..., Any]
_INTERRUPTED = """
import signal
from testbed import interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)
interrupts._AT_ONCE = {at_once}

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
    assert "interrupted: tests clean up first; once more: ended at once" in run.output
    assert (pytester.path / "cleaned").exists()
    assert (run.folder / "report.yaml").exists()


def test_a_later_one_ends_everything_at_once(judge: Judge, pytester: pytest.Pytester) -> None:
    run = _interrupted(judge, "SIGINT", 0)
    assert run.result.ret == -signal.SIGINT
    assert not (pytester.path / "cleaned").exists()


@pytest.mark.parametrize(("second", "code"), [("SIGINT", pytest.ExitCode.INTERRUPTED), ("SIGTERM", -signal.SIGTERM)])
def test_under_run_it_is_run_who_answers_and_says_when_to_end(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, second: str, code: int
) -> None:
    monkeypatch.setenv(events.RESERVED_BY, str(os.getpid()))
    run = _interrupted(judge, second, 60)
    assert run.result.ret == code
    assert "once more" not in run.output


def test_an_end_that_nobody_asked_for_by_a_signal_changes_no_signal(judge: Judge) -> None:
    run = judge("@required(1)\ndef test_it():\n    pytest.exit('enough')\n", apart=True)
    assert "once more" not in run.output
