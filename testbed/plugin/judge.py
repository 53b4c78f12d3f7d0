"""The hooks of each process that runs tests: skip what cannot be judged, decide who is to blame for a failure, and keep its evidence."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

import pytest

from testbed.bringup import Testbed
from testbed.conformance.context import RunContext
from testbed.conformance.profiles import profile
from testbed.conformance.requirement import Requirement
from testbed.conformance.results import is_only_about_cluster
from testbed.conformance.selection import choose, is_selected
from testbed.conformance.verdicts import decisive_exception, is_observation, verdict_for
from testbed.errors import ApiError, Blocked, NodesUnderPressure, NothingToJudge, TestbedError
from testbed.folders import shown
from testbed.models.names import safe_name
from testbed.models.requirement_enums import Tier, Verdict
from testbed.plugin import serial_tests
from testbed.plugin.assertion_text import FailedComparison
from testbed.plugin.canaries import first_claims
from testbed.plugin.failure_text import debugging_hints, failure_text, scenarios_of
from testbed.plugin.markers import requirement_of_item
from testbed.redaction import redactor
from testbed.vocabulary import budgets, evidence
from testbed.vocabulary.pods.probe_results import explain_comparison
from testbed.vocabulary.scenario import Scenario
from testbed.vocabulary.world import World

_NEED_CLAIMS = (Tier.E2E, Tier.DISRUPTIVE)
_TIMEOUT = 300.0  # seconds for one test: longer than all its budgets, so that only a hanging harness exceeds it


class Judge:
    """The hooks of a process that runs tests: pytest's only process, or each worker of xdist."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self._pressure = ""
        self._of_devices: list[str] = []
        self._compared: FailedComparison | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect other profiles and tiers, sort the tests, and skip what the cluster or the driver file rules out."""
        kept = [item for item in items if self._is_requested(requirement_of_item(item))]
        if len(kept) < len(items):
            config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = serial_tests.in_run_order(kept, self.context.facts)
        for item in items:
            requirement = requirement_of_item(item)
            if requirement:
                self._prepare(item, requirement)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Block tests whose pods would not start either: the nodes are under pressure, or the driver can prepare no claim."""
        if self._pressure and requirement_of_item(item):
            raise Blocked(f"an earlier test found nodes that accept no pods\n  {self._pressure}")
        requirement = requirement_of_item(item)
        if requirement and requirement.tier in _NEED_CLAIMS:
            first_claims.block_if_nothing_is_prepared(self.context.request.report)

    def pytest_assertrepr_compare(self, op: str, left: object, right: object) -> list[str] | None:
        """Explain a failed comparison of devices. pytest shortens the lines, so they are kept for the report."""
        lines = explain_comparison(op, left, right)
        self._of_devices = lines or self._of_devices
        self._compared = FailedComparison(op, left, right)
        return lines or None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Turn a test that finds nothing to judge into a skipped test."""
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
        """Add verdict, message and evidence to the report of a failed test, which pytest sends to the controller."""
        report = yield
        requirement = requirement_of_item(item)
        absent = call.excinfo.value.__cause__ if call.excinfo and report.skipped else None
        if isinstance(absent, NothingToJudge):
            found = {"verdict": Verdict.NOT_APPLICABLE.value, "message": str(absent)}
            vars(report)["dra"] = {**found, "evidence": "", "observed": False}
        if requirement and report.passed and call.when == "call" and serial_tests.REPETITION in item.stash:
            self._keep_evidence(item, requirement)  # of a flaky test, what was seen in both cases
        if requirement and report.failed and call.excinfo:
            raised = _decisive(call.excinfo)
            if isinstance(raised.value, NodesUnderPressure):
                self._pressure = self._pressure or f"{item.nodeid}: {raised.value.cause}"
            about_cluster = is_only_about_cluster(requirement.about, self.context.request.profile)
            verdict = verdict_for(raised.value, before_the_test=call.when == "setup", about_cluster=about_cluster)
            kept = self._keep_evidence(item, requirement, of_clean_up=call.when == "teardown")
            text = redactor.redact(failure_text(item, raised, requirement, verdict, self._of_devices, self._compared))
            device_class = getattr(item, "callspec", None) and item.callspec.params.get("world")  # type: ignore[attr-defined]
            text = f"with class {device_class}: {text}" if device_class else text
            if kept:
                text += f"\n  evidence: {shown(self.context.request.report / kept)}"
            observed = is_observation(raised.value) and call.when == "call"
            decided = {"verdict": verdict.value, "message": text, "evidence": kept, "observed": observed}
            vars(report)["dra"] = {**decided, **_where(item), "lost_api_server": _lost_api_server(raised.value)}
            if item.config.option.tbstyle == "auto":
                report.longrepr = text
        if report.failed:
            _redact(report)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector) -> None:
        """Print with --pdb how to look at the namespace, which is deleted when the debugger is left."""
        if isinstance(node, pytest.Function) and node.config.getoption("usepdb"):
            lines = [line for each in scenarios_of(node).values() for line in debugging_hints(each, _kubeconfig(node))]
            node.config.get_terminal_writer().write("".join(f"{line}\n" for line in lines))

    def _is_requested(self, requirement: Requirement | None) -> bool:
        if requirement is None:
            return True
        request = self.context.request
        return profile(request.profile).has(requirement.id) and is_selected(requirement, request.tiers, request.failed)

    def _prepare(self, item: pytest.Item, requirement: Requirement) -> None:
        choice = choose(requirement, self.context.facts)
        if choice.verdict:
            item.add_marker(pytest.mark.skip(reason=f"{choice.verdict}: {choice.reason}"))
        if not item.get_closest_marker("timeout"):
            # By signal, and only around the test itself: the clean-up has its own budgets.
            item.add_marker(pytest.mark.timeout(self._timeout(requirement), method="signal", func_only=True))

    def _timeout(self, requirement: Requirement) -> float:
        """Return how many seconds a test may take. A disruptive test may restart the driver on one node after the other.

        Low patience does not shorten this, because it does not shorten the waits for what must not happen.
        """
        patience = max(1.0, self.context.request.patience)
        on_all_nodes = budgets.repeated(budgets.DRIVER_PODS, self.context.facts.nodes).seconds
        return (_TIMEOUT + (on_all_nodes if requirement.tier is Tier.DISRUPTIVE else 0)) * patience

    def _keep_evidence(self, item: pytest.Item, requirement: Requirement, *, of_clean_up: bool = False) -> str:
        """Write the evidence and return its folder, relative to the report folder; '' if there is none.

        That of a failed clean-up gets a folder of its own: the driver may have crashed since the first one was written.
        """
        case = getattr(getattr(item, "callspec", None), "id", "")
        number = item.stash.get(serial_tests.REPETITION, 0)
        repetition = [f"repetition-{number}"] if number else []
        kept = Path("evidence", requirement.id, *([safe_name(case)] if case else []), *repetition)
        into = self.context.request.report / kept
        if not into.exists():
            _capture_all(item, into)
        elif of_clean_up:
            _capture_all(item, into / "clean-up")
        return str(kept) if into.exists() else ""


def _capture_all(item: pytest.Item, into: Path) -> None:
    """Write the evidence of all namespaces of a test. Of a disruptive test without one, write that of the driver."""
    found = scenarios_of(item)
    for name, each in found.items():
        _capture(each.capture, into if name == "scenario" else into / name)
    world = getattr(item, "funcargs", {}).get("world")
    if not found and serial_tests.is_disruptive(item) and isinstance(world, World):
        _capture(lambda folder: evidence.capture(world, None, folder), into)


def _decisive(raised: pytest.ExceptionInfo[BaseException]) -> pytest.ExceptionInfo[BaseException]:
    found = decisive_exception(raised.value)
    return raised if found is raised.value else pytest.ExceptionInfo.from_exception(found)


def _lost_api_server(raised: BaseException) -> bool:
    """Return True if the API server did not answer, or was overloaded."""
    return isinstance(raised, ApiError) and (not raised.status or raised.overloaded)


def _where(item: pytest.Item) -> dict[str, list[str]]:
    """Return the namespaces of a test and the nodes of its pods, for the controller."""
    scenarios = scenarios_of(item).values()
    found = [node for each in scenarios for node in _nodes_of(each)]
    return {"namespaces": [each.namespace for each in scenarios], "nodes": list(dict.fromkeys(found))}


def _nodes_of(scenario: Scenario) -> list[str]:
    try:
        pods = scenario.world.kube.list("v1", "Pod", scenario.namespace)
    except TestbedError:  # the controller looks at all nodes then
        return []
    return [str(pod["spec"]["nodeName"]) for pod in pods if pod["spec"].get("nodeName")]


def _redact(report: pytest.TestReport) -> None:
    """Remove credentials from what pytest shows of a failure, and from the output that it captured."""
    report.sections = [(title, redactor.redact(text)) for title, text in report.sections]
    text = report.longreprtext
    clean = redactor.redact(text)
    if clean != text:  # otherwise pytest's own representation stays, with its colours
        report.longrepr = clean


def _kubeconfig(item: pytest.Function) -> Path:
    """Return the testbed's kubeconfig. Every test with a scenario has the fixture."""
    return cast("Testbed", item.funcargs["testbed"]).cluster.kubeconfig


def _capture(write: Callable[[Path], None], into: Path) -> None:
    try:
        write(into)
    except (TestbedError, OSError) as refused:
        into.mkdir(parents=True, exist_ok=True)
        (into / "missing.txt").write_text(redactor.redact(f"{refused}\n"))
