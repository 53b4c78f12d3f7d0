"""Run the suites with pytest in a process of its own, and make the report from its events. For `execution`, `bench` and ci/."""

from __future__ import annotations

import contextlib
import difflib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

import pytest

from testbed import folders, process
from testbed.conformance import catalogue, events, report_folder
from testbed.errors import TestbedError, UsageError
from testbed.models.report import DriverConformanceReport
from testbed.models.run_request import RunRequest
from testbed.progress import Progress, Screen
from testbed.providers.process_marks import SUITES_ON, mark_of
from testbed.reporting import report, terminal

_OF_OTHER_PROJECTS = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")


def argv(request: RunRequest) -> list[str]:
    """Return the command line of pytest. pytest's own options are repeated there; the plugin gets the whole request as JSON."""
    suites = str(folders.data("suites"))
    tests = request.tests or (suites,)
    words = [*_pytest(), *tests, "--rootdir", str(_root(tests[0])), "--import-mode=importlib", "--no-header"]
    words += [f"--run-request={request.model_dump_json(by_alias=True)}"]
    words += ["-k", request.keyword] if request.keyword else []
    words += ["-v"] if request.verbose else []
    return [*words, "-n", str(request.workers)] if request.workers else words


def _pytest() -> list[str]:
    """Return how pytest is started: with the settings of the suites, and not those of a project around them or the report."""
    settings = folders.data("suites") / "pytest.ini"
    words = [sys.executable, "-P", "-m", "pytest", "-c", str(settings), "-p", "no:cacheprovider"]
    return [*words, *plugin_options()]


def _root(test: str) -> Path:
    """Return the folder that test IDs are relative to: the suites that the test belongs to, otherwise its own folder."""
    path = Path(test.partition("::")[0])
    return catalogue.suites_root(path) or (path if path.is_dir() else path.parent)


def matching_tests(keyword: str) -> frozenset[str]:
    """Return the tests that match a -k expression, as `folder/file.py::function`. UsageError if the expression is wrong or matches none."""
    suites = str(folders.data("suites"))
    words = [*_pytest(), suites, "--rootdir", suites, "--collect-only", "-q", "-k", keyword]
    collected = process.run(words, check=False, timeout=None, env=environment())
    if collected.code == pytest.ExitCode.USAGE_ERROR:
        raise UsageError(collected.stderr.strip().removeprefix("ERROR: "), hint='as in pytest: -k "two_cats or shared"')
    tests = frozenset(line.partition("[")[0] for line in collected.stdout.splitlines() if "::" in line)
    if collected.code == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise UsageError(f"-k {keyword!r} matches no test", hint=_similar(keyword))
    if collected.code:
        raise TestbedError(f"pytest cannot collect the suites: {collected.stdout.strip()[-500:]}")
    return tests


def _similar(keyword: str) -> str:
    entries = catalogue.read([folders.data("suites")]).entries
    names = {name.lower(): name for entry in entries for name in (entry.function, entry.requirement.id)}
    near = difflib.get_close_matches(keyword.lower(), names, n=3, cutoff=0.4)
    return (
        f"did you mean {' or '.join(names[each] for each in near)}?"
        if near
        else "dra-testbed list -o json shows all tests"
    )


def plugin_options() -> list[str]:
    """Return the options with which pytest finds the plugin: none where this package is installed, its module in a bare checkout."""
    installed = metadata.entry_points(group="pytest11", name="dra_testbed")
    return [] if installed else ["-p", "testbed.plugin"]


def run_suites(request: RunRequest, *, quiet: bool = False) -> DriverConformanceReport:
    """Run the suites until they end, or until Ctrl-C, and return the report of what happened.

    With `quiet`, what pytest prints is not shown. The caller has reserved the report folder. pytest is killed with this process, also by
    SIGKILL: if it continued, it would blame the driver for a testbed that is being swept.
    """
    if not _begun_early(request.report):
        report_folder.discard(request.report)
    words = process.kill_with_parent(argv(request))
    env = {**environment(), SUITES_ON: mark_of(folders.state() / request.testbed)}
    warned: list[str] = []
    try:
        status = process.run(words, check=False, timeout=None, env=env).code if quiet else _call(words, env, warned)
    except (KeyboardInterrupt, SystemExit) as stopped:
        made = None
        with contextlib.suppress(TestbedError):
            made = _reported(request.report)
        if made is None or not _stopped_once(
            stopped, warned
        ):  # a second signal: end at once; the report can be read later
            raise
        status = pytest.ExitCode.INTERRUPTED
    shown = quiet or _ended(request.report)
    made = _reported(request.report)
    if made is None:
        raise _nothing_ran(status, interrupted=bool(warned))
    if not shown:
        _show(made, request.report)
    return made


def _stopped_once(stopped: BaseException, warned: Sequence[str]) -> bool:
    """Return True if one SIGTERM or SIGHUP was the only signal: then pytest has cleaned up, as after one Ctrl-C."""
    return isinstance(stopped, SystemExit) and len(warned) == 1


def _call(words: Sequence[str], env: Mapping[str, str], warned: list[str]) -> int:
    """Run pytest on this terminal. Signals reach it as SIGTERM, which ends Python without a traceback before the plugin handles signals."""

    def say(what: str) -> None:
        warned.append(what)
        with contextlib.suppress(OSError):  # a terminal that was closed
            Progress().say(what)

    return process.call(words, env=env, what="the test run", say=say, interrupt=signal.SIGTERM)


def _log(folder: Path) -> Sequence[events.Event]:
    return events.read(folder) if (folder / events.FILE).exists() else ()


def _begun_early(folder: Path) -> bool:
    """Return True if an EarlyReport of this run is in the folder."""
    log = _log(folder)
    return bool(log) and not events.suites_began(log)


def _ended(folder: Path) -> bool:
    """Return True if pytest ended by itself or after an interrupt: then it has written the report and shown it."""
    return any(each["event"] in events.RUN_ENDS for each in _log(folder))


def _reported(folder: Path) -> DriverConformanceReport | None:
    """Write and return the report of what happened, None if nothing did."""
    if not events.suites_began(_log(folder)):
        return None
    try:
        return report.write(folder)
    except OSError as refused:
        raise report_folder.write_error(folder, refused) from refused


def _nothing_ran(status: int, *, interrupted: bool) -> BaseException:
    if interrupted:
        return KeyboardInterrupt()
    if status == pytest.ExitCode.USAGE_ERROR:
        return UsageError("pytest refused the run", hint="its reason is above")
    return TestbedError(f"pytest ended with exit code {status} before any test ran", hint="its last lines are above")


def _show(made: DriverConformanceReport, folder: Path) -> None:
    console = Screen(highlight=False)
    terminal.print_verdict(made, console)
    console.print(f"report: {folders.shown(folder)}", markup=False, soft_wrap=True)


def environment() -> dict[str, str]:
    """Return this process's environment, with the path of this package and the note that the report folder is reserved.

    Options and plugins of pytest for other projects are left out: they could change what is judged, and the report would not say so.
    """
    found = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {name: value for name, value in os.environ.items() if name not in _OF_OTHER_PROJECTS}
    return {**kept, "PYTHONPATH": os.pathsep.join(found), report_folder.RESERVED_BY: str(os.getpid())}
