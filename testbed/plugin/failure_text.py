"""The text of a failed requirement: what was expected and seen, then the requirement, the test and the evidence. Used by `judge`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from testbed.conformance.requirement import Requirement
from testbed.errors import DriverFailed, TestbedError, UsageError
from testbed.models.requirement_enums import Subject, Verdict
from testbed.plugin.assertion_text import FailedComparison, explain_assertion
from testbed.vocabulary.pods.probe_results import describe_empty_results
from testbed.vocabulary.scenario import Scenario

_BLAME = {
    Verdict.ERROR: "the harness or the cluster failed, not the driver",
    Verdict.TIMEOUT: "the test took longer than all its waits together may: the harness hung, or the machine is slow (try --patience)",
    Verdict.BLOCKED: "something that the test needs was missing, so the test did not begin",
}
_DRIVER_PREVENTS = (
    "the driver, not the cluster: other requirements judge that; this one is about the cluster and could not be judged"
)
_USER = "a file or an option of this run, or the harness; nothing is known about the driver"


def failure_text(
    item: pytest.Item,
    raised: pytest.ExceptionInfo[BaseException],
    requirement: Requirement,
    verdict: Verdict,
    of_devices: Sequence[str] = (),
    compared: FailedComparison | None = None,
) -> str:
    """Return the text for the screen and the report. `of_devices` explains the last failed comparison of devices."""
    lines = [_cause(item, raised, of_devices, compared)]
    if verdict is Verdict.BLOCKED and requirement.about is Subject.CLUSTER and isinstance(raised.value, DriverFailed):
        lines.append(f"  blame: {_DRIVER_PREVENTS}")
    elif verdict is Verdict.ERROR and isinstance(raised.value, UsageError):
        lines.append(f"  blame: {_USER}")
    elif verdict in _BLAME:
        lines.append(f"  blame: {_BLAME[verdict]}")
    elif requirement.about is Subject.CLUSTER:
        lines.append("  blame: the cluster, not the driver: the requirement is about the cluster")
    lines.append(f"  requirement: {requirement.id} ({requirement.level}) {requirement.sentence}")
    lines.append(f"  test: {_line(item, raised)}")
    return "\n".join(lines)


def debugging_hints(scenario: Scenario, kubeconfig: Path) -> list[str]:
    """Return shell commands that show the namespace of a test in the debugger."""
    return [
        f"namespace {scenario.namespace} exists until you leave the debugger (q); to look at it:",
        f"  export KUBECONFIG={shlex.quote(str(kubeconfig))}",
        f"  kubectl -n {scenario.namespace} get pods,resourceclaims,events",
    ]


def scenarios_of(item: pytest.Item) -> dict[str, Scenario]:
    """Return the scenarios of a test by the names of their fixtures."""
    return {name: each for name, each in getattr(item, "funcargs", {}).items() if isinstance(each, Scenario)}


def _cause(
    item: pytest.Item,
    raised: pytest.ExceptionInfo[BaseException],
    of_devices: Sequence[str],
    compared: FailedComparison | None,
) -> str:
    """Return the reason of a failure. Only unexpected exceptions have a traceback."""
    if isinstance(raised.value, AssertionError):
        said = str(raised.value) or "assertion failed"
        if of_devices and said.startswith(f"assert {of_devices[0]}"):
            return "\n".join(of_devices)
        probe_results = [
            look for each in scenarios_of(item).values() for look in each.world.probe_results.of(each.namespace)
        ]
        return "\n".join(
            [explain_assertion(_statement(item, raised), said, compared), *describe_empty_results(probe_results)]
        )
    if isinstance(raised.value, TestbedError | pytest.fail.Exception):
        return str(raised.value)
    shown = raised.getrepr(style="short", tbfilter=lambda each: each.traceback.cut(path=item.path))
    return f"{raised.typename}: {raised.value}\n{shown}"


def _statement(item: pytest.Item, raised: pytest.ExceptionInfo[BaseException]) -> str:
    """Return the assertion that failed, if it is in the test itself."""
    last = raised.traceback[-1]
    return str(last.statement) if Path(str(last.path)) == item.path else ""


def _line(item: pytest.Item, raised: pytest.ExceptionInfo[BaseException]) -> str:
    """Return path, number and text of the test's line that failed."""
    for entry in reversed(raised.traceback):
        if Path(str(entry.path)) == item.path:
            shown = (
                item.path.relative_to(item.config.rootpath)
                if item.path.is_relative_to(item.config.rootpath)
                else item.path
            )
            return f"{shown}:{entry.lineno + 1}: {str(entry.statement).strip()}"
    return item.nodeid
