from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

import testbed
from testbed import folders, process
from testbed.conformance import events
from testbed.conformance.results import exit_code
from testbed.errors import TestbedError, UsageError
from testbed.models.requirement_enums import Result
from testbed.models.run_request import RunRequest
from testbed.process import ProcessId
from testbed.reporting import report
from testbed.runs import pytest_process
from testbed.runs.early_report import EarlyReport
from testbed.runs.pytest_process import argv, run_suites
from testbed.waiting import Budget, eventually_true
from tests.reporting.test_report import STARTED

SOON = Budget("soon", 20, "a pytest starts or ends")


def _request(report: Path, *tests: Path) -> RunRequest:
    return RunRequest(testbed="t", report=report, tests=tuple(map(str, tests)))


def _pytest_that(monkeypatch: pytest.MonkeyPatch, status: int, request: RunRequest, *lines: str) -> None:
    def call(words: list[str], **_: object) -> int:
        assert words == process.kill_with_parent(argv(request))
        if lines:
            request.report.mkdir(exist_ok=True)
            (request.report / events.FILE).write_text("".join(f"{line}\n" for line in lines))
        return status

    monkeypatch.setattr(process, "call", call)


def test_a_killed_pytest_leaves_an_incomplete_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    request = _request(tmp_path)
    _pytest_that(monkeypatch, -9, request, json.dumps(STARTED))
    assert run_suites(request).result is Result.INCOMPLETE
    assert (tmp_path / "junit.xml").exists()


def test_a_pytest_that_refuses_its_options_is_wrong_usage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    request = _request(tmp_path)
    _pytest_that(monkeypatch, 4, request)
    with pytest.raises(UsageError):
        run_suites(request)


def test_a_pytest_that_fails_before_any_test_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    request = _request(tmp_path)
    _pytest_that(monkeypatch, 3, request)
    with pytest.raises(TestbedError, match="before any test ran"):
        run_suites(request)


def test_a_pytest_that_is_interrupted_before_any_test_is_not_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*_: object, say: Callable[[str], None], interrupt: signal.Signals, **__: object) -> int:
        assert interrupt is signal.SIGTERM  # Python answers SIGINT during its start with a traceback
        say("one moment")
        return -15

    monkeypatch.setattr(process, "call", call)
    with pytest.raises(KeyboardInterrupt):
        run_suites(_request(tmp_path))
    assert capsys.readouterr().err == "one moment\n"


def test_a_second_interrupt_leaves_a_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def call(*_: object, **__: object) -> int:
        (tmp_path / events.FILE).write_text(json.dumps(STARTED) + "\n")
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "call", call)
    with pytest.raises(KeyboardInterrupt):
        run_suites(_request(tmp_path))
    assert "incomplete" in (tmp_path / report.FILE).read_text()


@pytest.mark.parametrize(("says", "ends"), [(["one moment"], False), (["one moment", "at once"], True)])
@pytest.mark.parametrize("ran", [True, False])
def test_one_signal_ends_with_the_report_unless_nothing_ran(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: list[str], ends: bool, ran: bool
) -> None:
    def call(*_: object, say: Callable[[str], None], **__: object) -> int:
        if ran:
            (tmp_path / events.FILE).write_text(json.dumps(STARTED) + "\n")
        for each in says:
            say(each)
        raise SystemExit(143)

    monkeypatch.setattr(process, "call", call)
    if ran and not ends:
        assert exit_code(run_suites(_request(tmp_path))) == 4
        return
    with pytest.raises(SystemExit) as stopped:
        run_suites(_request(tmp_path))
    assert stopped.value.code == 143


@pytest.mark.parametrize(("written", "shown"), [(True, 0), (False, 1)])
def test_the_table_is_printed_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], written: bool, shown: int
) -> None:
    def call(*_: object, **__: object) -> int:
        ended = [{"event": "run-stopped", "time": 101.0}] if written else []
        (tmp_path / events.FILE).write_text("".join(json.dumps(each) + "\n" for each in [STARTED, *ended]))
        report.write(tmp_path)  # an incomplete report exists from the beginning
        return 2

    monkeypatch.setattr(process, "call", call)
    run_suites(_request(tmp_path))
    assert capsys.readouterr().out.count(f"report: {tmp_path}") == shown


def test_the_report_of_an_earlier_run_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / events.FILE).write_text(json.dumps(STARTED) + "\n")
    request = _request(tmp_path)
    _pytest_that(monkeypatch, 3, request)
    with pytest.raises(TestbedError):
        run_suites(request)


def test_a_pytest_that_fails_before_any_test_leaves_the_early_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = {name: value for name, value in STARTED.items() if name not in ("event", "time")}
    EarlyReport(tmp_path, first).begin()
    request = _request(tmp_path)
    _pytest_that(monkeypatch, 3, request)
    with pytest.raises(TestbedError, match="before any test ran"):
        run_suites(request)
    assert "the run ended before the first test" in (tmp_path / report.FILE).read_text()


def test_the_plugin_is_an_option_only_if_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [])
    assert pytest_process.plugin_options() == ["-p", "testbed.plugin"]
    monkeypatch.setattr(metadata, "entry_points", lambda **_: ["dra_testbed"])
    assert pytest_process.plugin_options() == []


def test_the_suites_import_this_package_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "testbed").mkdir()
    (tmp_path / "testbed/__init__.py").write_text("raise SystemExit('that is another testbed')")
    suite = tmp_path / "suites/test_where.py"
    suite.parent.mkdir()
    suite.write_text("import testbed\n\ndef test_where(): raise SystemExit(testbed.__file__)")
    monkeypatch.chdir(tmp_path)
    words = argv(_request(tmp_path))[:4]
    assert words == [sys.executable, "-P", "-m", "pytest"]
    ran = process.run([*words, suite, "-q", "-p", "no:cacheprovider"], env=pytest_process.environment(), check=False)
    assert f"SystemExit: {testbed.__file__}" in ran.stdout


def test_settings_of_other_projects_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = ['--no-such-option']")
    suites = tmp_path / "lib/suites"
    suites.mkdir(parents=True)
    (suites / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    (suites / "test_where.py").write_text("def test_where(request): raise SystemExit(request.config.rootpath)")
    monkeypatch.setattr(folders, "data", lambda _: suites)
    (tmp_path / "report").mkdir()
    words = [word for word in argv(_request(tmp_path / "report")) if not word.startswith("--run-request=")]
    ran = process.run(words, cwd=tmp_path, env=pytest_process.environment(), check=False)
    assert f"SystemExit: {suites}" in ran.stdout


@pytest.mark.parametrize(
    ("variable", "value"), [("PYTEST_ADDOPTS", "--setup-only"), ("PYTEST_PLUGINS", "no_such_plugin")]
)
def test_options_and_plugins_of_other_projects_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    suite = tmp_path / "suites/test_it.py"
    suite.parent.mkdir()
    suite.write_text("def test_it(): raise SystemExit('it runs')")
    monkeypatch.setenv(variable, value)
    ran = process.run([*argv(_request(tmp_path))[:4], suite], env=pytest_process.environment(), check=False)
    assert "SystemExit: it runs" in ran.stdout


def test_a_report_that_cannot_be_written_is_an_error_with_its_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    request = _request(tmp_path)
    (tmp_path / ".report.yaml.new").symlink_to("/dev/full")
    _pytest_that(monkeypatch, 3, request, json.dumps(STARTED))
    with pytest.raises(TestbedError, match=f"cannot write the report to {tmp_path}: No space left") as failed:
        run_suites(request)
    assert failed.value.exit_code == 3


def test_the_suites_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    suite, pids = tmp_path / "test_long.py", tmp_path / "pid"
    suite.write_text(
        "import os, pathlib, signal\n"
        f"def test_long():\n    pathlib.Path({str(pids)!r}).write_text(f'{{os.getpid()}}.')\n    signal.pause()\n"
    )
    runner = (
        "import pathlib, sys\nfrom testbed.models.run_request import RunRequest\nfrom testbed.runs import pytest_process\n"
        "words = [sys.executable, '-P', '-m', 'pytest', '-p', 'no:cacheprovider', sys.argv[1]]\n"
        "pytest_process.argv = lambda request: words\n"
        "pytest_process.run_suites(RunRequest(testbed='t', report=pathlib.Path(sys.argv[2])))\n"
    )
    words = [sys.executable, "-c", runner, str(suite), str(tmp_path / "report")]
    ours = process.start(words, log=tmp_path / "log", env=pytest_process.environment())
    try:
        assert eventually_true(lambda: pids.exists() and pids.read_text().endswith("."), SOON)
        suites = ProcessId.of(int(pids.read_text().strip(".")))
        assert suites
    finally:
        process.kill(ours)
    try:
        assert eventually_true(lambda: not suites.alive, SOON)
    finally:
        process.kill(suites)


def test_an_empty_log_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    request = _request(tmp_path)

    def call(*_: object, **__: object) -> int:
        (tmp_path / events.FILE).touch()
        return 3

    monkeypatch.setattr(process, "call", call)
    with pytest.raises(TestbedError, match="before any test ran") as failed:
        run_suites(request)
    assert failed.value.exit_code == 3


def test_single_tests_can_be_run_in_any_folder(tmp_path: Path) -> None:
    suites = folders.data("suites")
    tests = tuple(suites / each for each in ("claims/test_templates.py::test_a", "sharing/test_pods.py::test_b"))
    words = argv(_request(tmp_path, *tests))
    assert words[words.index("--rootdir") + 1] == str(suites)
    own = tmp_path / "test_mine.py"
    words = argv(_request(tmp_path, own))
    assert words[words.index("--rootdir") + 1] == str(tmp_path)


def test_the_id_of_a_requirement_matches_only_its_tests() -> None:
    assert {test.partition("/")[0] for test in pytest_process.matching_tests("PREP-004")} == {"prepare"}
    assert len(pytest_process.matching_tests("PREP-004")) == 1
    assert len(pytest_process.matching_tests("PREP-004 or PREP-005")) > 2
