"""The one process that decides and writes: events as they happen, the report at the end, the verdict on the screen."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed import process
from testbed.conformance import catalogue, report_folder
from testbed.conformance.catalogue import Catalogue, Entry
from testbed.conformance.context import RunContext
from testbed.conformance.events import EventLog
from testbed.conformance.run_started import run_started
from testbed.conformance.selection import Choice, apply_selection, plan
from testbed.conformance.verdicts import exit_code, worst
from testbed.errors import TestbedError
from testbed.models.report import DriverConformanceReport
from testbed.models.requirement_enums import Tier, Verdict
from testbed.plugin.fixtures import WAITED
from testbed.progress import Screen
from testbed.reporting import report, terminal

_ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


class Controller:
    """The hooks of pytest's main process."""

    def __init__(self, context: RunContext, config: pytest.Config, worker_key: str) -> None:
        self.context, self.config, self.worker_key = context, config, worker_key
        self.log = EventLog(context.request.report)
        self.report: DriverConformanceReport | None = None
        self.absent: list[str] = []
        self._tests: dict[str, str] = {}
        self._phases: dict[str, list[pytest.TestReport]] = {}
        self._decided: dict[str, Verdict | None] = {}
        self._disruptive: set[str] = set()
        self._open: set[str] = set()
        self._deselected: list[str] = []
        self._collected: list[str] | None = None
        self._beginning = run_started(context.request, context.driver_file, context.environment)
        self._lost = False
        self._others_failed = False

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Say what of the driver is not there, before tests wait for it in vain."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        for line in self.absent:
            if reporter:
                reporter.write_line(f"note: {line}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Now that pytest has understood what is wanted, the report of an earlier run goes, and this one begins. Workers say it later."""
        if self._collected or (self._collected is not None and not self._chosen):
            self._begin()
            self._select(self._collected, self._deselected)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[Any]) -> None:
        """xdist: workers on this host die with us at once; by themselves they would first go on with their tests for a while."""
        for spec in specs:
            if spec.popen and not spec.python:
                spec.python = shlex.join(process.kill_with_parent([sys.executable]))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """xdist: tell a worker what was decided."""
        node.workerinput[self.worker_key] = self.context.to_json()

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """What was left out by -k and the like is a part of the catalogue all the same, also where its whole file is."""
        self._deselected += [
            item.nodeid for item in items if hasattr(getattr(item, "function", None), "dra_requirement")
        ]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Without xdist: the tests are known. With it, the controller collects what the workers have passed over, which was known."""
        if not self._tests:
            self._collected = [item.nodeid for item in session.items]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """With xdist: the first worker's tests are everybody's."""
        if not self._begun and (ids or not self._chosen):
            self._begin()
            self._select(ids)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        test = _plain(nodeid)
        if test in self._tests:
            self._write("test-started", test=test, id=self._tests[test])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test has ended; the last one settles it. A worker that died sends one report, of no phase."""
        test = _plain(report.nodeid)
        if test not in self._tests:
            self._others_failed |= report.failed
            return
        if report.when == "setup" and test in self._phases:  # it is tried again, and its first try was not torn down
            self._finish(test, self._phases.pop(test))
        self._phases.setdefault(test, []).append(report)
        if report.when not in ("setup", "call"):
            self._finish(test, self._phases.pop(test))

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """With -v, each test that passed shows its seconds."""
        if report.when == "call" and report.passed and _plain(report.nodeid) in self._tests:
            return "passed", ".", f"PASSED ({report.duration:.1f} s)"
        return None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the report; a run that judged nothing, or has no clear result, is not green."""
        if self._lost or (exitstatus == pytest.ExitCode.USAGE_ERROR and not self._begun):
            return
        if not self._begun and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._chosen:
            self._chose_nothing(session)
            return
        if not self._begun:
            self._begin()
        self._settle()
        finished = exitstatus in _ENDED and not (self._open and (session.shouldfail or session.shouldstop))
        self._write("run-finished" if finished else "run-stopped", status=int(exitstatus))
        with self._kept():
            self.report = report.write(self.context.request.report)
        code = exit_code(self.report)
        failed = exitstatus == pytest.ExitCode.TESTS_FAILED and (code != 0 or self._others_failed)
        if exitstatus in _ENDED and not failed:
            session.exitstatus = code

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The verdict."""
        if self.report:
            terminalreporter.section("verdict")
            terminal.print_verdict(self.report, Screen(highlight=False))
            terminalreporter.write_line(f"report: {self.context.request.report}")

    def disruptive(self) -> list[str]:
        """The tests of the serial lane that were not ruled out."""
        return [
            test for test, wanted in self._tests.items() if wanted in self._disruptive and not self._decided[wanted]
        ]

    @property
    def _chosen(self) -> str:
        """The words with which tests were chosen, if they were."""
        given = {"-k": self.config.option.keyword, "-m": self.config.option.markexpr}
        return " ".join(f"{flag} {words!r}" for flag, words in given.items() if words)

    def _chose_nothing(self, session: pytest.Session) -> None:
        """A slip of the keyboard costs nobody the report of his red run, nor its evidence."""
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            reporter.ensure_newline()
            reporter.write_line(f"error: {self._chosen} chooses no test; {self.context.request.report} is as it was")

    @property
    def _begun(self) -> bool:
        return not self._beginning

    def _begin(self) -> None:
        """The first event says who is judged, where, and by what."""
        with self._kept():
            report_folder.start_report(self.log.folder)
        self._write("run-started", **self._beginning)
        self._beginning = {}
        with self._kept():
            report.write(self.context.request.report)

    def _write(self, event: str, **facts: object) -> None:
        with self._kept():
            self.log.write(event, **facts)

    @contextlib.contextmanager
    def _kept(self) -> Iterator[None]:
        """Without its events a run is worth nothing: where they cannot be written, it ends, with one message."""
        try:
            yield
        except OSError as refused:
            self._lost = True
            pytest.exit(
                str(report_folder.write_error(self.context.request.report, refused)), returncode=TestbedError.exit_code
            )

    def _select(self, ids: Sequence[str], left_out: Sequence[str] = ()) -> None:
        known = catalogue.read(_places(self.config, [*ids, *left_out]))
        tests: dict[str, list[str]] = {}
        for test in map(_plain, ids):
            entry = _entry(known, self.config.rootpath, test)
            if entry:
                self._tests[test] = entry.requirement.id
                tests.setdefault(entry.requirement.id, []).append(test)
        rows = []
        every = [entry.requirement for entry in known.entries]
        cases = {entry.requirement.id: entry.cases for entry in known.entries}
        for planned in plan(
            every, self.context.facts, frozenset(self.context.request.tiers), self.context.request.profile
        ):
            selected = tests.get(planned.requirement.id, [])
            choice = apply_selection(planned, bool(selected))
            self._decided[choice.requirement.id] = choice.verdict
            if choice.requirement.tier is Tier.DISRUPTIVE:
                self._disruptive.add(choice.requirement.id)
            missing = max(0, cases[choice.requirement.id] - len(selected))
            rows.append({**_row(choice), "tests": selected, "left_out": missing})
        self._open = {test for test, wanted in self._tests.items() if not self._decided[wanted]}
        self._write("selected", requirements=rows, digest=known.digest)
        with self._kept():
            report.write(self.context.request.report)

    def _settle(self) -> None:
        """Tests that were left before their clean-up had ended, by an interrupt or out of the debugger: a failure is a fact."""
        for test, phases in self._phases.items():
            if any(phase.failed for phase in phases):
                self._finish(test, phases)

    def _finish(self, test: str, phases: list[pytest.TestReport]) -> None:
        self._open.discard(test)
        requirement = self._tests[test]
        if self._decided[requirement]:
            return
        facts = [_fact(phase) for phase in phases]
        first_bad = next((fact for fact in facts if fact["message"]), facts[0])
        self._write(
            "test-finished",
            test=test,
            id=requirement,
            verdict=worst(Verdict(fact["verdict"]) for fact in facts),
            seconds=round(sum(phase.duration for phase in phases) - _waited(phases[-1]), 3),
            message=first_bad["message"],
            evidence=next((fact["evidence"] for fact in facts if fact["evidence"]), ""),
            observed=first_bad.get("observed", False),
        )


def _row(choice: Choice) -> dict[str, Any]:
    each = choice.requirement
    named = {"id": each.id, "sentence": each.sentence, "level": each.level, "tier": each.tier, "source": each.source}
    return {**named, "verdict": choice.verdict, "reason": choice.reason}


def _fact(phase: pytest.TestReport) -> dict[str, Any]:
    """What one phase says. A failure without our mark is a worker's crash; a skip without it is a hole in the suite."""
    if phase.passed:
        return {"verdict": Verdict.PASS, "message": "", "evidence": ""}
    known: dict[str, Any] | None = getattr(phase, "dra", None)
    if phase.skipped and not known:
        text = phase.longrepr[2] if isinstance(phase.longrepr, tuple) else str(phase.longrepr)
        return {
            "verdict": Verdict.ERROR,
            "message": f"the test skipped itself, which no suite may: {text}",
            "evidence": "",
        }
    return known or {"verdict": Verdict.ERROR, "message": phase.longreprtext, "evidence": ""}


def _waited(phase: pytest.TestReport) -> float:
    """How long the test stood in the queue for its devices; that is nobody's work."""
    return sum(value for name, value in phase.user_properties if name == WAITED and isinstance(value, float))


def _places(config: pytest.Config, ids: Sequence[str]) -> set[Path]:
    """Where the catalogue of this run comes from: all of the suites that its tests belong to, or that were named; else its files."""
    files = {(config.rootpath / test.partition("::")[0]).resolve() for test in ids}
    named = {(config.invocation_params.dir / arg.partition("::")[0]).resolve() for arg in config.args}
    return {catalogue.suites_root(file) or file for file in files} | {
        top for each in named if (top := catalogue.suites_root(each))
    }


def _entry(known: Catalogue, root: Path, test: str) -> Entry | None:
    file, _, rest = test.partition("::")
    return known.at((root / file).resolve(), rest.partition("[")[0])


def _plain(nodeid: str) -> str:
    """Workers of xdist add @group to the ids of grouped tests."""
    head, bracket, tail = nodeid.rpartition("]")
    return f"{head}{bracket}{tail.partition('@')[0]}"
