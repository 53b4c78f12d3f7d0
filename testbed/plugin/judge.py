"""Where tests run: skip what cannot be judged here, find whose fault a failure is, keep its evidence, say it shortly, cause first."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import pytest

from testbed.bringup import Testbed, health
from testbed.conformance.context import RunContext
from testbed.conformance.profiles import profile
from testbed.conformance.requirement import Requirement
from testbed.conformance.selection import choose
from testbed.conformance.verdicts import is_observation, verdict_for
from testbed.errors import ApiError, Blocked, NodesUnderPressure, NothingToJudge, TestbedError
from testbed.models.names import safe_name
from testbed.models.requirement_enums import Tier, Verdict
from testbed.plugin import serial_tests
from testbed.plugin.assertion_text import Comparison
from testbed.plugin.failure_text import debugging_hints, failure_text, scenarios_of
from testbed.plugin.markers import requirement_of_item
from testbed.vocabulary import budgets
from testbed.vocabulary.pods.probe_results import explain_comparison
from testbed.vocabulary.scenario import Scenario

_CAP = 300.0  # seconds for one test: several budgets in a row; only a harness that hangs comes here


class Judge:
    """The hooks of a process that runs tests: the only one, or each of xdist's workers."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self._short = ""
        self._told: list[str] = []
        self._compared: Comparison | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out profiles and tiers that were not asked for, and skip what the cluster or the driver file rules out."""
        kept = [item for item in items if self._asked_for(requirement_of_item(item))]
        if len(kept) < len(items):
            config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = serial_tests.in_run_order(kept, self.context.facts)
        for item in items:
            requirement = requirement_of_item(item)
            if requirement:
                self._prepare(item, requirement)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Where a test found nodes short of something, no later one waits for its pods in vain."""
        if self._short and requirement_of_item(item):
            raise Blocked(f"a test before this one found nodes that take no pods\n  {self._short}")

    def pytest_assertrepr_compare(self, op: str, left: object, right: object) -> list[str] | None:
        """A comparison of devices that failed, in words; pytest shortens what it is told, so the whole is kept for the report."""
        told = explain_comparison(op, left, right)
        self._told = told or self._told
        self._compared = Comparison(op, left, right)
        return told or None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """A test that finds nothing to judge is over, and is no failure of pytest's either."""
        try:
            return (yield)
        except NothingToJudge as absent:
            if not requirement_of_item(item):
                raise
            raise pytest.skip.Exception(f"{Verdict.NOT_APPLICABLE}: {absent.what}", _use_item_location=True) from absent

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add verdict, message and evidence to a failed report; they travel with it to the controller."""
        report = yield
        requirement = requirement_of_item(item)
        absent = call.excinfo.value.__cause__ if call.excinfo and report.skipped else None
        if isinstance(absent, NothingToJudge):
            found = {"verdict": Verdict.NOT_APPLICABLE.value, "message": str(absent)}
            vars(report)["dra"] = {**found, "evidence": "", "observed": False}
        if requirement and report.failed and call.excinfo:
            raised = _first(call.excinfo)
            if isinstance(raised.value, NodesUnderPressure):
                self._short = self._short or f"{item.nodeid}: {raised.value.cause}"
            verdict = verdict_for(raised.value, requirement.about, before_the_test=call.when == "setup")
            kept = self._keep_evidence(item, requirement)
            text = failure_text(item, raised, requirement, verdict, self._told, self._compared)
            if isinstance(raised.value, ApiError) and not raised.value.status:
                self._stop_if_broken(item.session)
            if kept:
                text += f"\n  evidence: {self.context.request.report / kept}"
            seen = is_observation(raised.value) and call.when == "call"
            vars(report)["dra"] = {"verdict": verdict.value, "message": text, "evidence": kept, "observed": seen}
            if item.config.option.tbstyle == "auto":
                report.longrepr = text
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector) -> None:
        """With --pdb: nothing is deleted before the debugger is left, so say how to look at it."""
        if isinstance(node, pytest.Function) and node.config.getoption("usepdb"):
            lines = [line for each in scenarios_of(node).values() for line in debugging_hints(each, _kubeconfig(node))]
            node.config.get_terminal_writer().write("".join(f"{line}\n" for line in lines))

    def _stop_if_broken(self, session: pytest.Session) -> None:
        """Where nobody answers any more, that is said once, and not by each test that is left."""
        session.shouldstop = session.shouldstop or health.permanent_failure(self.context.request.testbed)

    def _asked_for(self, requirement: Requirement | None) -> bool:
        if requirement is None:
            return True
        tiers = self.context.request.tiers
        return profile(self.context.request.profile).has(requirement.id) and (not tiers or requirement.tier in tiers)

    def _prepare(self, item: pytest.Item, requirement: Requirement) -> None:
        choice = choose(requirement, self.context.facts)
        if choice.verdict:
            item.add_marker(pytest.mark.skip(reason=f"{choice.verdict}: {choice.reason}"))
        if not item.get_closest_marker("timeout"):
            # By signal, and only around the test itself: the clean-up after it has budgets of its own.
            item.add_marker(pytest.mark.timeout(self._cap(requirement), method="signal", func_only=True))

    def _cap(self, requirement: Requirement) -> float:
        """How long a test may take. What a disruptive one does to the driver, it may do node after node."""
        everywhere = budgets.repeated(budgets.DRIVER_PODS, self.context.facts.nodes).seconds
        return (_CAP + (everywhere if requirement.tier is Tier.DISRUPTIVE else 0)) * self.context.request.patience

    def _keep_evidence(self, item: pytest.Item, requirement: Requirement) -> str:
        """Write the evidence before anything is cleaned up; the folder, as seen from the report folder."""
        case = getattr(getattr(item, "callspec", None), "id", "")
        kept = Path("evidence", requirement.id, *([safe_name(case)] if case else []))
        into = self.context.request.report / kept
        if not into.exists():
            for name, each in scenarios_of(item).items():
                _capture(each, into if name == "scenario" else into / name)
        return str(kept) if into.exists() else ""


def _first(raised: pytest.ExceptionInfo[BaseException]) -> pytest.ExceptionInfo[BaseException]:
    """Of several fixtures that failed at the end of a test, the first: the others find again what it left. pytest lists it last."""
    if isinstance(raised.value, BaseExceptionGroup):
        return _first(pytest.ExceptionInfo.from_exception(raised.value.exceptions[-1]))
    return raised


def _kubeconfig(item: pytest.Function) -> Path:
    """Of the testbed, which every scenario has in its train."""
    return cast("Testbed", item.funcargs["testbed"]).cluster.kubeconfig


def _capture(scenario: Scenario, into: Path) -> None:
    try:
        scenario.capture(into)
    except (TestbedError, OSError) as refused:
        into.mkdir(parents=True, exist_ok=True)
        (into / "missing.txt").write_text(f"{refused}\n")
