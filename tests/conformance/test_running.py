from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

import testbed
from testbed import process
from testbed.conformance import events, running
from testbed.conformance.running import SuiteRun, run_suites
from testbed.errors import TestbedError, UsageError
from testbed.models.words import Result
from tests.conformance.test_report import STARTED


def _pytest_that(monkeypatch: pytest.MonkeyPatch, status: int, wanted: SuiteRun, *lines: str) -> None:
    def call(argv: list[str], **_: object) -> int:
        assert argv == wanted.argv()
        if lines:
            wanted.report.mkdir(exist_ok=True)
            (wanted.report / events.FILE).write_text("".join(f"{line}\n" for line in lines))
        return status

    monkeypatch.setattr(process, "call", call)


def test_a_pytest_that_was_killed_leaves_an_incomplete_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted = SuiteRun("t", tmp_path)
    _pytest_that(monkeypatch, -9, wanted, json.dumps(STARTED))
    assert run_suites(wanted).result is Result.INCOMPLETE
    assert (tmp_path / "junit.xml").exists()


def test_a_pytest_that_refused_its_options_is_wrong_usage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted = SuiteRun("t", tmp_path)
    _pytest_that(monkeypatch, 4, wanted)
    with pytest.raises(UsageError):
        run_suites(wanted)


def test_a_pytest_that_never_began_is_our_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted = SuiteRun("t", tmp_path)
    _pytest_that(monkeypatch, 3, wanted)
    with pytest.raises(TestbedError, match="before anything ran"):
        run_suites(wanted)


def test_the_report_of_an_earlier_run_is_never_taken_for_this_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / events.FILE).write_text(json.dumps(STARTED) + "\n")
    wanted = SuiteRun("t", tmp_path)
    _pytest_that(monkeypatch, 3, wanted)
    with pytest.raises(TestbedError):
        run_suites(wanted)


def test_the_plugin_is_named_only_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [])
    assert running.plugin_options() == ["-p", "testbed.plugin"]
    monkeypatch.setattr(metadata, "entry_points", lambda **_: ["dra_testbed"])
    assert running.plugin_options() == []


def test_the_suites_run_with_this_very_testbed_wherever_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "testbed").mkdir()
    (tmp_path / "testbed/__init__.py").write_text("raise SystemExit('that is another testbed')")
    suite = tmp_path / "suites/test_where.py"
    suite.parent.mkdir()
    suite.write_text("import testbed\n\ndef test_where(): raise SystemExit(testbed.__file__)")
    monkeypatch.chdir(tmp_path)
    argv = [sys.executable, "-P", "-m", "pytest"]
    assert SuiteRun("t", tmp_path).argv()[:4] == argv
    ran = process.run([*argv, suite, "-q", "-p", "no:cacheprovider"], env=running.environment(), check=False)
    assert f"SystemExit: {testbed.__file__}" in ran.stdout
