"""The hooks of pytest's main process: it writes events as they happen, the report at the end, and the verdict on the screen."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed import process
from testbed.conformance import catalogue, report_folder
from testbed.conformance.catalogue import Catalogue, Entry
from testbed.conformance.context import RunContext
from testbed.conformance.events import EventLog
from testbed.conformance.results import exit_code, subject_of
from testbed.conformance.run_started import run_started
from testbed.conformance.selection import Choice, apply_selection, plan
from testbed.conformance.verdicts import Attempt, needs_another_attempt
from testbed.errors import TestbedError
from testbed.folders import shown
from testbed.models.report import DriverConformanceReport
from testbed.models.requirement_enums import Subject, Tier, Verdict
from testbed.plugin.canaries.first_claims import FirstClaims
from testbed.plugin.canaries.surroundings import FailedTest, Interruption, Surroundings
from testbed.plugin.finished_tests import (
    TO_BE_REPEATED,
    FinishedTest,
    announce,
    announce_end_of_repetitions,
    explain_interruption,
    fact_of,
    summarize,
)
from testbed.plugin.running_tests import RunningTests
from testbed.progress import Screen
from testbed.reporting import report, terminal

_EXAMINED = (Verdict.FAIL, Verdict.ERROR, Verdict.TIMEOUT)
_TESTS_RAN = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


class Controller:
    """The hooks of pytest's main process."""

    def __init__(
        self,
        context: RunContext,
        config: pytest.Config,
        worker_key: str,
        surroundings: Surroundings,
        first_claims: FirstClaims,
    ) -> None:
        self.context, self.config, self.worker_key = context, config, worker_key
        self._surroundings, self._first_claims = surroundings, first_claims
        self._session: pytest.Session | None = None
        self.log = EventLog(context.request.report)
        self.report: DriverConformanceReport | None = None
        self.missing: list[str] = []
        self._tests: dict[str, str] = {}
        self._phases: dict[str, list[pytest.TestReport]] = {}
        self._decided: dict[str, Verdict | None] = {}
        self._disruptive: set[str] = set()
        self._repeatable: set[str] = set()
        self._about_cluster: set[str] = set()
        self._attempts: dict[str, list[Attempt]] = {}
        self._beside = RunningTests()
        self._repeats = self._may_repeat = self._may_block = not (config.option.maxfail or config.getoption("usepdb"))
        self._open: set[str] = set()
        self._deselected: list[str] = []
        self._collected: list[str] | None = None
        self._started = run_started(context.request, context.driver_file, context.environment, context.images)
        self._log_failed = False
        self._others_failed = False

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Print what is missing of the driver before tests wait for it."""
        self._session = session
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        for line in self.missing:
            if reporter:
                reporter.write_line(f"note: {line}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Begin the report of this run after pytest has accepted its options. With xdist, wait for the workers' tests."""
        if self._collected or (self._collected is not None and not self._selection):
            self._begin()
            self._write_selection(self._collected, self._deselected)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[Any]) -> None:
        """Make xdist's workers on this host end with this process. Otherwise they would continue their tests for a while."""
        for spec in specs:
            if spec.popen and not spec.python:
                spec.python = shlex.join(process.kill_with_parent([sys.executable]))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send the context to one of xdist's workers."""
        node.workerinput[self.worker_key] = self.context.to_json()

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Remember deselected tests, because their requirements belong to the catalogue of this run."""
        self._deselected += [
            item.nodeid for item in items if hasattr(getattr(item, "function", None), "dra_requirement")
        ]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember the collected tests. With xdist, only serial tests are collected here, which are already known."""
        if not self._tests:
            self._collected = [item.nodeid for item in session.items]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Take the tests of xdist's first worker, because all workers collect the same."""
        if not self._begun and (ids or not self._selection):
            self._begin()
            self._write_selection(ids)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Write that a test begins."""
        test = _plain(nodeid)
        if test in self._tests:
            self._write("test-started", test=test, id=self._tests[test])
            self._beside.start(test)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the phases of a test; the last one completes it. For a worker that crashed there is one report without a phase."""
        test = _plain(report.nodeid)
        if test not in self._tests:
            self._others_failed |= report.failed
            return
        if report.when == "setup" and test in self._phases:  # it runs again, after a first attempt without teardown
            self._finish(test, self._phases.pop(test))
        self._phases.setdefault(test, []).append(report)
        if report.when not in ("setup", "call"):
            self._finish(test, self._phases.pop(test))

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Show with -v the seconds of each test that passed, and which failed test will be repeated."""
        if report.failed and self._is_repeated(_plain(report.nodeid), fact_of(report)["verdict"]):
            return TO_BE_REPEATED, "R", "FAILED, will be repeated"
        if report.when == "call" and report.passed and _plain(report.nodeid) in self._tests:
            return "passed", ".", f"PASSED ({report.duration:.1f} s)"
        return None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the report and set pytest's exit code: a run without a clear result is not green."""
        if self._log_failed or (exitstatus == pytest.ExitCode.USAGE_ERROR and not self._begun):
            return
        if not self._begun and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._selection:
            self._refuse_empty_selection(session)
            return
        if not self._begun:
            self._begin()
        self._finish_failed()
        finished = exitstatus in _TESTS_RAN and not (self._open and (session.shouldfail or session.shouldstop))
        self._write("run-finished" if finished else "run-stopped", status=int(exitstatus))
        with self._exit_on_write_error():
            self.report = report.write(self.context.request.report)
        code = exit_code(self.report)
        failed = exitstatus == pytest.ExitCode.TESTS_FAILED and (code != 0 or self._others_failed)
        if exitstatus in _TESTS_RAN and not failed:
            session.exitstatus = code

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the verdict."""
        if self.report:
            terminalreporter.section("verdict")
            terminal.print_verdict(self.report, Screen(highlight=False))
            terminalreporter.write_line(f"report: {shown(self.context.request.report)}")

    def disruptive(self) -> list[str]:
        """Return the IDs of the serial tests that can be judged."""
        return [
            test for test, wanted in self._tests.items() if wanted in self._disruptive and not self._decided[wanted]
        ]

    def begin_repetitions(self) -> list[str]:
        """Return the IDs of the tests that failed and have to be repeated. No other failure is repeated from now on."""
        self._repeats = False
        return [test for test in self._attempts if self.is_open(test)]

    def is_open(self, test: str) -> bool:
        """Return True if another repetition is needed to judge a test."""
        attempts = self._attempts.get(test)
        if not attempts or not self._may_repeat:
            return False
        return needs_another_attempt(attempts, is_repeatable=self._tests[test] in self._repeatable)

    def _is_repeated(self, test: str, verdict: str) -> bool:
        """Return True if a failed test is repeated before it is judged."""
        return self._repeats and verdict == Verdict.FAIL and self._tests.get(test) in self._repeatable

    @property
    def _selection(self) -> str:
        """Return the options that select tests, with their values."""
        given = {"-k": self.config.option.keyword, "-m": self.config.option.markexpr}
        return " ".join(f"{flag} {words!r}" for flag, words in given.items() if words)

    def _refuse_empty_selection(self, session: pytest.Session) -> None:
        """Fail without touching the report of an earlier run: the selection is probably a typing error."""
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            reporter.ensure_newline()
            reporter.write_line(
                f"error: {self._selection} matches no test; {self.context.request.report} was not changed"
            )

    @property
    def _begun(self) -> bool:
        return not self._started

    def _begin(self) -> None:
        """Begin a new report with its first event."""
        with self._exit_on_write_error():
            report_folder.start_report(self.log.folder)
        self._write("run-started", **self._started)
        self._started = {}
        with self._exit_on_write_error():
            report.write(self.context.request.report)

    def _write(self, event: str, **facts: object) -> None:
        with self._exit_on_write_error():
            self.log.write(event, **facts)

    @contextlib.contextmanager
    def _exit_on_write_error(self) -> Iterator[None]:
        """End the run with one message if its events or its report cannot be written."""
        try:
            yield
        except OSError as refused:
            self._log_failed = True
            pytest.exit(
                str(report_folder.write_error(self.context.request.report, refused)), returncode=TestbedError.exit_code
            )

    def _write_selection(self, ids: Sequence[str], left_out: Sequence[str] = ()) -> None:
        known = catalogue.read(_catalogue_paths(self.config, [*ids, *left_out]))
        tests: dict[str, list[str]] = {}
        for test in map(_plain, ids):
            entry = _entry(known, self.config.rootpath, test)
            if entry:
                self._tests[test] = entry.requirement.id
                tests.setdefault(entry.requirement.id, []).append(test)
        rows = []
        every = [entry.requirement for entry in known.entries]
        cases = {entry.requirement.id: entry.cases for entry in known.entries}
        request = self.context.request
        for planned in plan(every, self.context.facts, request.tiers, request.profile, request.failed):
            selected = tests.get(planned.requirement.id, [])
            choice = apply_selection(planned, bool(selected))
            self._decided[choice.requirement.id] = choice.verdict
            if choice.requirement.tier is Tier.DISRUPTIVE:
                self._disruptive.add(choice.requirement.id)
            if choice.requirement.tier is Tier.E2E:
                self._repeatable.add(choice.requirement.id)
            if subject_of(choice.requirement.about, request.profile) is Subject.CLUSTER:
                self._about_cluster.add(choice.requirement.id)
            missing = max(0, cases[choice.requirement.id] - len(selected))
            rows.append({**_row(choice), "tests": selected, "left_out": missing})
        self._open = {test for test, wanted in self._tests.items() if not self._decided[wanted]}
        self._write("selected", requirements=rows, digest=known.digest)
        with self._exit_on_write_error():
            report.write(self.context.request.report)

    def _finish_failed(self) -> None:
        """Complete failed tests whose clean-up did not end because of an interrupt or the debugger: their failure counts."""
        for test, phases in self._phases.items():
            if any(phase.failed for phase in phases):
                self._finish(test, phases, is_examined=False)

    def _finish(self, test: str, phases: list[pytest.TestReport], *, is_examined: bool = True) -> None:
        self._open.discard(test)
        requirement, beside = self._tests[test], self._beside.end(test)
        if self._decided[requirement]:
            return
        done = summarize(phases)
        interruption = self._examine(test, done) if is_examined else None
        if interruption:
            verdict = Verdict.FAIL if interruption.by_driver else Verdict.ERROR
            message = explain_interruption(interruption, done.message)
            done = replace(done, verdict=verdict, message=message, evidence=done.evidence or f"evidence/{requirement}")
        elif is_examined:
            done = self._blocked_by_first_claims(requirement, done)
        component = interruption.component if interruption else ""
        self._attempts.setdefault(test, []).append(Attempt(done.verdict, component))
        is_stopped = interruption is not None and not interruption.is_repaired
        to_repeat = not is_stopped and self.is_open(test)
        if done.verdict in _EXAMINED:
            announce(self._reporter, requirement, done, self.context.request.report, to_repeat=to_repeat)
        if to_repeat and done.verdict is not Verdict.PASS:
            self._keep_names(done.evidence, beside)
        self._write(
            "test-finished",
            test=test,
            id=requirement,
            verdict=done.verdict,
            seconds=done.seconds,
            message=done.message,
            evidence=done.evidence,
            observed=done.observed,
            **({"note": done.note} if done.note else {}),
            **({"to_repeat": True, "beside": beside} if to_repeat else {}),
            **({"component": component} if component else {}),
        )
        if is_stopped:
            self._stop(done.message)

    def _examine(self, test: str, done: FinishedTest) -> Interruption | None:
        """Return which component of the cluster failed during a test that did not pass; None if none did, or no cluster was needed."""
        requirement = self._tests[test]
        if done.verdict not in _EXAMINED or requirement not in self._repeatable | self._disruptive:
            return None
        earlier = [each.component for each in self._attempts.get(test, ()) if each.component]
        return self._surroundings.examine(
            FailedTest(
                began=done.began,
                ended=done.ended,
                nodes=done.nodes,
                namespaces=done.namespaces,
                evidence=self.context.request.report / (done.evidence or f"evidence/{requirement}"),
                interrupted_by=", ".join(earlier),
                judges_cluster=requirement in self._about_cluster,
                lost_api_server=done.lost_api_server,
            )
        )

    def _blocked_by_first_claims(self, requirement: str, done: FinishedTest) -> FinishedTest:
        """Return a failed test with what is known if the driver can prepare no claim at all: only the first of these tests fails."""
        needs_claims = requirement in self._repeatable | self._disruptive
        if done.verdict not in _EXAMINED or not needs_claims or not self._may_block:
            return done
        if self._first_claims.found:
            return replace(done, verdict=Verdict.BLOCKED, message=str(self._first_claims.found))
        seen = self._first_claims.try_after(requirement)
        if seen:
            self._may_repeat = self._repeats = False
            announce_end_of_repetitions(self._reporter, seen)
            return replace(done, message=f"{done.message}\n  {seen}")
        return done

    @property
    def _reporter(self) -> Any:
        return self.config.pluginmanager.get_plugin("terminalreporter")

    def _stop(self, why: str) -> None:
        """End the session, because the cluster is broken and cannot be repaired. xdist's main loop has its own switch."""
        line = why.partition("\n")[0]
        for each in filter(None, [self._session, self.config.pluginmanager.get_plugin("dsession")]):
            each.shouldstop = line

    def _keep_names(self, evidence: str, beside: Sequence[str]) -> None:
        """Write the names of the tests that ran beside a failed one to its evidence."""
        folder = self.context.request.report / evidence
        if evidence and folder.is_dir():
            with self._exit_on_write_error():
                (folder / "beside.txt").write_text("".join(f"{test}\n" for test in beside))


def _row(choice: Choice) -> dict[str, Any]:
    each = choice.requirement
    named = {"id": each.id, "sentence": each.sentence, "level": each.level, "tier": each.tier, "about": each.about}
    return {**named, "source": each.source, "verdict": choice.verdict, "reason": choice.reason, "exempt": choice.exempt}


def _catalogue_paths(config: pytest.Config, ids: Sequence[str]) -> set[Path]:
    """Return the paths of this run's catalogue: the whole suites that its tests or arguments belong to, and files of other tests."""
    files = {(config.rootpath / test.partition("::")[0]).resolve() for test in ids}
    named = {(config.invocation_params.dir / arg.partition("::")[0]).resolve() for arg in config.args}
    return {catalogue.suites_root(file) or file for file in files} | {
        top for each in named if (top := catalogue.suites_root(each))
    }


def _entry(known: Catalogue, root: Path, test: str) -> Entry | None:
    file, _, rest = test.partition("::")
    return known.at((root / file).resolve(), rest.partition("[")[0])


def _plain(nodeid: str) -> str:
    """Return a test ID without the @group that workers of xdist add."""
    head, bracket, tail = nodeid.rpartition("]")
    return f"{head}{bracket}{tail.partition('@')[0]}"
