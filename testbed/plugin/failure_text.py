"""A failed requirement in a few lines: what was expected and why it did not come, then which requirement, where, and the evidence."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from testbed.conformance.requirement import Requirement
from testbed.errors import TestbedError
from testbed.models.requirement_enums import Verdict
from testbed.plugin.assertion_text import Comparison, explain_assertion
from testbed.vocabulary.pods.probe_results import describe_empty_results
from testbed.vocabulary.scenario import Scenario

_NOT_THE_DRIVER = {
    Verdict.ERROR: "the harness or the cluster failed, not the driver",
    Verdict.TIMEOUT: "the test took longer than any of its waits may: the harness hung, or the machine is slow (--patience)",
    Verdict.BLOCKED: "what the test needs was not there, so it could not begin",
}


def failure_text(
    item: pytest.Item,
    raised: pytest.ExceptionInfo[BaseException],
    requirement: Requirement,
    verdict: Verdict,
    told: Sequence[str] = (),
    compared: Comparison | None = None,
) -> str:
    """The text for the screen and for the report. `told` is what the last comparison of devices that failed means."""
    lines = [_cause(item, raised, told, compared)]
    if verdict in _NOT_THE_DRIVER:
        lines.append(f"  blame: {_NOT_THE_DRIVER[verdict]}")
    lines.append(f"  requirement: {requirement.id} ({requirement.level}) {requirement.sentence}")
    lines.append(f"  test: {_place(item, raised)}")
    return "\n".join(lines)


def debugging_hints(scenario: Scenario, kubeconfig: Path) -> list[str]:
    """How to look at a test's namespace while it stands, in lines that can be pasted."""
    return [
        f"namespace {scenario.namespace} stands until you leave the debugger (q); to look at it:",
        f"  export KUBECONFIG={shlex.quote(str(kubeconfig))}",
        f"  kubectl -n {scenario.namespace} get pods,resourceclaims,events",
    ]


def scenarios_of(item: pytest.Item) -> dict[str, Scenario]:
    """The namespaces of a test, by the names of its fixtures."""
    return {name: each for name, each in getattr(item, "funcargs", {}).items() if isinstance(each, Scenario)}


def _cause(
    item: pytest.Item, raised: pytest.ExceptionInfo[BaseException], told: Sequence[str], compared: Comparison | None
) -> str:
    """What our own errors say needs no traceback; what nobody foresaw does."""
    if isinstance(raised.value, AssertionError):
        said = str(raised.value) or "assertion failed"
        if told and said.startswith(f"assert {told[0]}"):
            return "\n".join(told)
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
    """The assertion that failed, where it is the test's own."""
    last = raised.traceback[-1]
    return str(last.statement) if Path(str(last.path)) == item.path else ""


def _place(item: pytest.Item, raised: pytest.ExceptionInfo[BaseException]) -> str:
    """The line of the test that failed, and what it says."""
    for entry in reversed(raised.traceback):
        if Path(str(entry.path)) == item.path:
            shown = (
                item.path.relative_to(item.config.rootpath)
                if item.path.is_relative_to(item.config.rootpath)
                else item.path
            )
            return f"{shown}:{entry.lineno + 1}: {str(entry.statement).strip()}"
    return item.nodeid
