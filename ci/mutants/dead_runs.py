"""Run all requirements about the driver on drivers that do nothing. Called by `__main__`; `dead` judges the results."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ci.mutants import dead, suites
from ci.mutants.activation import MutableTestbed
from ci.mutants.digest import digest
from ci.mutants.matrix import CONTROL, Key, MutantResult, Plan, State
from testbed.conformance import facts
from testbed.conformance.catalogue import Entry
from testbed.conformance.selection import choose
from testbed.models.report import RequirementReport
from testbed.models.run_request import RunRequest

# Most tests fail by a timeout, so many can wait at the same time.
_WORKERS = 6


def run(wanted: Plan, target: MutableTestbed, state: State, work: Path, patience: float) -> None:
    """Run the cases one after the other, and add their results to the state."""
    reasons = dead.read().by_key()
    for name, entries in wanted.items():
        judged = _judged(target, entries)
        state.add(_unjudged(name, entries, judged))
        with target.as_mutant(name):
            _run_case(target.testbed.name, name, judged, state, work / f"dead-{name}", patience, reasons)


def _judged(target: MutableTestbed, entries: Sequence[Entry]) -> list[Entry]:
    """Return the requirements that are judged on the correct driver."""
    with target.as_mutant(CONTROL):
        testbed = target.testbed
        kube, capabilities = testbed.kube, testbed.cluster.capabilities
        found = facts.gather(kube, target.driver_file, capabilities, testbed.owner, testbed.kept_nodes)
    return [entry for entry in entries if choose(entry.requirement, found).verdict is None]


def _unjudged(name: str, entries: Sequence[Entry], judged: Sequence[Entry]) -> list[MutantResult]:
    others = (entry for entry in entries if entry not in judged)
    return [MutantResult(name, each.requirement.id, dead.UNJUDGED, digest=digest(each)) for each in others]


def _run_case(
    testbed: str,
    name: str,
    entries: Sequence[Entry],
    state: State,
    folder: Path,
    patience: float,
    reasons: Mapping[Key, str],
) -> None:
    """Run the tests side by side. Repeat alone, with full patience, those without an answer and those that should have passed."""
    began = time.monotonic()
    request = RunRequest(testbed=testbed, report=folder.absolute(), patience=patience, workers=_WORKERS, check=False)
    seen = _results(name, entries, _rows(request, entries))
    state.add(seen)
    again = dead.to_repeat(seen, reasons)
    for entry in (each for each in entries if each.requirement.id in again):
        report_folder = request.report / "again" / entry.requirement.id
        alone = request.model_copy(update={"report": report_folder, "workers": 0, "patience": max(1.0, patience)})
        state.add(_results(name, [entry], _rows(alone, [entry])))
    print(f"{name}: {len(entries)} requirements in {time.monotonic() - began:.0f} s, {len(again)} repeated", flush=True)


def _rows(request: RunRequest, entries: Sequence[Entry]) -> dict[str, RequirementReport]:
    """Run the tests of these requirements. Return what the report says about each."""
    return {each.id: each for each in suites.run(request, entries).requirements}


def _results(name: str, entries: Sequence[Entry], rows: Mapping[str, RequirementReport]) -> list[MutantResult]:
    found = [(entry, rows.get(entry.requirement.id)) for entry in entries]
    return [replace(_result(name, entry.requirement.id, row), digest=digest(entry)) for entry, row in found]


def _result(name: str, requirement: str, row: RequirementReport | None) -> MutantResult:
    message = row.message.partition("\n")[0] if row else "it was not selected"
    return MutantResult(
        name, requirement, dead.answer_of(name, row and row.verdict), message, row.seconds if row else 0
    )
