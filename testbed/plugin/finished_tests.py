"""What the phases of one attempt of a test reported together, and the lines that announce it. Used by the controller."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed.conformance.verdicts import worst
from testbed.folders import shown
from testbed.models.requirement_enums import Verdict
from testbed.plugin.canaries.surroundings import Interruption
from testbed.plugin.fixtures import NOTE, WAITED

_CAUSES = ("  likely cause:", "  last seen:", "  blame:")
_MOST_LINES = 3
TO_BE_REPEATED = "to be repeated"  # what pytest counts a failed test as, until its last attempt


@dataclass(frozen=True)
class FinishedTest:
    """One attempt. The worst phase decides; its message and evidence are those of the attempt.

    `nodes` are those of the test's pods. `began` and `ended` are seconds since the epoch; `seconds` do not count the wait for devices.
    `lost_api_server` is True if the API server did not answer, or was overloaded. `note` is a sentence for the report, also after a pass.
    """

    verdict: Verdict
    message: str
    evidence: str
    observed: bool
    seconds: float
    nodes: tuple[str, ...]
    namespaces: tuple[str, ...]
    began: float
    ended: float
    lost_api_server: bool
    note: str = ""


def summarize(phases: Sequence[pytest.TestReport]) -> FinishedTest:
    """Return what setup, call and teardown of one attempt reported."""
    facts = [fact_of(phase) for phase in phases] + _without_body(phases)
    verdict = worst(Verdict(fact["verdict"]) for fact in facts)
    decisive = sorted((fact for fact in facts if fact["message"]), key=lambda fact: fact["verdict"] != verdict)
    return FinishedTest(
        verdict=verdict,
        message=decisive[0]["message"] if decisive else "",
        evidence=next((fact["evidence"] for fact in (*decisive, *facts) if fact["evidence"]), ""),
        observed=bool(decisive) and decisive[0].get("observed", False),
        seconds=round(sum(phase.duration for phase in phases) - _waited(phases[-1]), 3),
        nodes=_names(facts, "nodes"),
        namespaces=_names(facts, "namespaces"),
        began=getattr(phases[0], "start", 0.0),
        ended=getattr(phases[-1], "stop", 0.0) or time.time(),
        lost_api_server=any(fact.get("lost_api_server") for fact in facts),
        note="; ".join(str(value) for name, value in phases[-1].user_properties if name == NOTE),
    )


def fact_of(phase: pytest.TestReport) -> dict[str, Any]:
    """Return the verdict of one phase. Without data from `judge`, a failure is a crashed worker, and a skip is an error in the suite."""
    if phase.passed:
        return {"verdict": Verdict.PASS, "message": "", "evidence": ""}
    known: dict[str, Any] | None = getattr(phase, "dra", None)
    if phase.skipped and not known:
        text = phase.longrepr[2] if isinstance(phase.longrepr, tuple) else str(phase.longrepr)
        return {
            "verdict": Verdict.ERROR,
            "message": f"the test called pytest.skip, which suites must not do: {text}",
            "evidence": "",
        }
    return known or {"verdict": Verdict.ERROR, "message": phase.longreprtext, "evidence": ""}


def _without_body(phases: Sequence[pytest.TestReport]) -> list[dict[str, Any]]:
    """Return an error if setup passed and the body of the test did not run, which pytest reports as passed."""
    if not all(phase.passed for phase in phases) or any(phase.when == "call" for phase in phases):
        return []
    message = "pytest did not run the body of the test (--setup-only or --setup-plan, also in PYTEST_ADDOPTS)"
    return [{"verdict": Verdict.ERROR, "message": message, "evidence": ""}]


def explain_interruption(interruption: Interruption, message: str) -> str:
    """Return the message of an interrupted attempt: first the component, then the first line of what the test reported."""
    blame = "the driver" if interruption.by_driver else "the cluster, not the driver"
    said = message.partition("\n")[0]
    return f"{interruption.text}\n  blame: {blame}" + (f"\n  the test reported: {said}" if said else "")


def _names(facts: Sequence[dict[str, Any]], key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for fact in facts for name in fact.get(key, ())))


def _waited(phase: pytest.TestReport) -> float:
    """Return how many seconds the test waited for devices, which do not count as its duration."""
    return sum(value for name, value in phase.user_properties if name == WAITED and isinstance(value, float))


def headline(message: str) -> list[str]:
    """Return the first line of a failure, and those that say the likely cause and what was last seen."""
    first, *others = message.splitlines() or ["no message"]
    return [first, *(line for line in others if line.startswith(_CAUSES))][:_MOST_LINES]


def announce(reporter: Any, requirement: str, done: FinishedTest, report: Path, *, to_repeat: bool) -> None:
    """Print a failure at once, with its likely cause: a run that is watched, or a log of CI, must not keep it until the end."""
    if reporter:
        what = "failed, will be repeated" if to_repeat else str(done.verdict)
        reporter.ensure_newline()
        for line in headline(done.message):
            reporter.write_line(f"{requirement} {what}: {line}" if line[:1] != " " else line)
        if done.evidence and not to_repeat:
            reporter.write_line(f"  evidence: {shown(report / done.evidence)}")


def announce_end_of_repetitions(reporter: Any, why: str) -> None:
    """Print why no failed test is repeated, and let pytest count those as failed that it took for tests to be repeated."""
    if reporter:
        reporter.ensure_newline()
        reporter.write_line(why)
        reporter.stats.setdefault("failed", []).extend(reporter.stats.pop(TO_BE_REPEATED, ()))
