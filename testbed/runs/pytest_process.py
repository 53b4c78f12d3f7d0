"""Run the suites with pytest as a process of its own, and read what it left behind. Called by `dra-testbed run`."""

from __future__ import annotations

import contextlib
import difflib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

from testbed import folders, process
from testbed.conformance import catalogue, events
from testbed.errors import TestbedError, UsageError
from testbed.models.report import DriverConformanceReport
from testbed.progress import Progress, Screen
from testbed.providers.process_marks import SUITES_ON, mark_of
from testbed.reporting import report, table


@dataclass(frozen=True)
class SuiteRun:
    """What to run, on what, and where the report goes."""

    testbed: str
    report: Path
    driver: Path | None = None
    tiers: tuple[str, ...] = ()
    profile: str | None = None
    keyword: str = ""
    workers: int | str = 0  # or "auto"
    patience: float = 1.0
    verbose: bool = False
    paths: tuple[Path, ...] = ()

    def argv(self) -> Sequence[str]:
        """The command line; it can be pasted into a shell."""
        suites = folders.data("suites")
        words = [
            *_pytest(suites),
            *map(str, self.paths or (suites,)),
            "--rootdir",
            str(_root((*self.paths, suites)[0])),
        ]
        words += ["--testbed", self.testbed, "--report", str(self.report), "--patience", f"{self.patience:g}"]
        words += ["--import-mode=importlib", "--no-header"]
        words += ["--driver", str(self.driver)] if self.driver else []
        words += [word for tier in self.tiers for word in ("--tier", tier)]
        words += ["--profile", self.profile] if self.profile else []
        words += ["-k", self.keyword] if self.keyword else []
        words += ["-v"] if self.verbose else []
        return [*words, "-n", str(self.workers)] if self.workers else words


def _pytest(suites: Path) -> list[str]:
    """How it is started. The suites' settings are named, so that no project around them or the report has a say."""
    words = [sys.executable, "-P", "-m", "pytest", "-c", str(suites / "pytest.ini"), "-p", "no:cacheprovider"]
    return [*words, *plugin_options()]


def _root(place: Path) -> Path:
    """The folder that ids are relative to: the suites that a folder, a file or a test in it is a part of, or else the folder."""
    named = Path(str(place).partition("::")[0])
    return catalogue.top(named) or (named if named.is_dir() else named.parent)


def chosen(keyword: str) -> frozenset[str]:
    """The test functions that an expression of -k chooses, as `folder/file.py::function`. UsageError for one that chooses none."""
    suites = folders.data("suites")
    words = [*_pytest(suites), str(suites), "--rootdir", str(suites), "--collect-only", "-q", "-k", keyword]
    collected = process.run(words, check=False, timeout=None, env=environment())
    if collected.code == pytest.ExitCode.USAGE_ERROR:
        raise UsageError(collected.stderr.strip().removeprefix("ERROR: "), hint='as in pytest: -k "two_cats or shared"')
    tests = frozenset(line.partition("[")[0] for line in collected.stdout.splitlines() if "::" in line)
    if collected.code == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise UsageError(f"-k {keyword!r} chooses no test", hint=_near(keyword))
    if collected.code:
        raise TestbedError(f"the suites cannot be collected: {collected.stdout.strip()[-500:]}")
    return tests


def _near(keyword: str) -> str:
    entries = catalogue.read([folders.data("suites")]).entries
    names = {name.lower(): name for entry in entries for name in (entry.function, entry.requirement.id)}
    near = difflib.get_close_matches(keyword.lower(), names, n=3, cutoff=0.4)
    return (
        f"did you mean {' or '.join(names[each] for each in near)}?"
        if near
        else "dra-testbed list -o json has all tests"
    )


def plugin_options() -> list[str]:
    """What pytest must be told to find the plugin: nothing where we are installed, its module in a bare checkout."""
    installed = metadata.entry_points(group="pytest11", name="dra_testbed")
    return [] if installed else ["-p", "testbed.plugin"]


def run_suites(wanted: SuiteRun, *, quiet: bool = False) -> DriverConformanceReport:
    """Run them to their end, or to the user's Ctrl-C, and make the report again from what happened.

    `quiet` keeps what pytest prints. The caller has reserved the report folder (`events.reserved`). Pytest dies with us, even of
    SIGKILL: on a testbed that somebody sweeps it would take for the driver's fault what is none. The log so far is an incomplete report.
    """
    if not _opened(wanted.report):
        events.discard(wanted.report)
    argv = process.kill_with_parent(wanted.argv())
    env = {**environment(), SUITES_ON: mark_of(folders.state() / wanted.testbed)}
    told: list[str] = []
    try:
        status = process.run(argv, check=False, timeout=None, env=env).code if quiet else _called(argv, env, told)
    except (KeyboardInterrupt, SystemExit) as stopped:
        made = None
        with contextlib.suppress(TestbedError):
            made = _reported(wanted.report)
        if made is None or not _told_once(stopped, told):  # somebody is in a hurry, and may look at it later
            raise
        status = pytest.ExitCode.INTERRUPTED
    shown = quiet or _ended(wanted.report)
    made = _reported(wanted.report)
    if made is None:
        raise _nothing_ran(status, interrupted=bool(told))
    if not shown:
        _show(made, wanted.report)
    return made


def _told_once(stopped: BaseException, told: Sequence[str]) -> bool:
    """Whether a SIGTERM or SIGHUP is the only signal that came: then pytest has cleaned up, and the report is as after a Ctrl-C."""
    return isinstance(stopped, SystemExit) and len(told) == 1


def _called(argv: Sequence[str], env: Mapping[str, str], told: list[str]) -> int:
    """Until its plugin listens, nobody has anything to clean up, and SIGTERM ends Python without a traceback; then both mean the same."""

    def say(what: str) -> None:
        told.append(what)
        with contextlib.suppress(OSError):  # a terminal that was closed
            Progress().say(what)

    return process.call(argv, env=env, what="the test run", say=say, interrupt=signal.SIGTERM)


def _log(folder: Path) -> Sequence[events.Event]:
    return events.read(folder) if (folder / events.FILE).exists() else ()


def _opened(folder: Path) -> bool:
    """Whether this run's report has begun already, without a testbed."""
    log = _log(folder)
    return bool(log) and not events.suites_began(log)


def _ended(folder: Path) -> bool:
    """Whether pytest came to its end, of itself or after an interrupt: then it has written the report and shown it."""
    return any(each["event"] in events.ENDS for each in _log(folder))


def _reported(folder: Path) -> DriverConformanceReport | None:
    """The report of what happened, None where nothing did."""
    if not events.suites_began(_log(folder)):
        return None
    try:
        return report.write(folder)
    except OSError as refused:
        raise events.not_written(folder, refused) from refused


def _nothing_ran(status: int, *, interrupted: bool) -> BaseException:
    if interrupted:
        return KeyboardInterrupt()
    if status == pytest.ExitCode.USAGE_ERROR:
        return UsageError("pytest did not take these options; its reason is above")
    return TestbedError(f"pytest ended with {status} before anything ran", hint="its last lines are above")


def _show(made: DriverConformanceReport, folder: Path) -> None:
    console = Screen(highlight=False)
    table.show(made, console)
    console.print(f"report: {folder}", markup=False, soft_wrap=True)


def environment() -> dict[str, str]:
    """Ours, with the way to this very package, and the word that the report folder is reserved."""
    found = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(found), events.RESERVED_BY: str(os.getpid())}
