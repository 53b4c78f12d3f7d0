"""Run all requirements about the driver on drivers that do nothing. Called by `__main__`; `dead` judges the results."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ci.mutants import dead
from ci.mutants.activation import MutableTestbed
from ci.mutants.digest import digest
from ci.mutants.matrix import CONTROL, Key, MutantResult, Plan, State
from testbed.conformance import events, facts
from testbed.conformance.catalogue import Entry
from testbed.conformance.selection import choose
from testbed.errors import TestbedError
from testbed.models.report import RequirementReport
from testbed.models.run_request import RunRequest
from testbed.reporting import report
from testbed.runs import pytest_process

# Most tests fail by a timeout, so many can wait at the same time.
_WORKERS = 6
# pytest with --maxfail repeats no failed test: here, failures are expected.
_NO_REPETITIONS = "--maxfail=1000000"


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
    request = RunRequest(testbed=testbed, report=folder.absolute(), patience=patience, workers=_WORKERS)
    seen = _results(name, entries, _run_suites(request, entries))
    state.add(seen)
    again = dead.to_repeat(seen, reasons)
    for entry in (each for each in entries if each.requirement.id in again):
        report_folder = request.report / "again" / entry.requirement.id
        alone = request.model_copy(update={"report": report_folder, "workers": 0, "patience": max(1.0, patience)})
        state.add(_results(name, [entry], _run_suites(alone, [entry])))
    print(f"{name}: {len(entries)} requirements in {time.monotonic() - began:.0f} s, {len(again)} repeated", flush=True)


def _run_suites(request: RunRequest, entries: Sequence[Entry]) -> dict[str, RequirementReport]:
    """Run the tests of these requirements. Return what the report says about each."""
    shutil.rmtree(request.report, ignore_errors=True)  # of an earlier attempt
    request.report.mkdir(parents=True)
    chosen = request.model_copy(update={"tests": tuple(entry.test for entry in entries)})
    with (request.report / "pytest.log").open("w") as log:
        words = [*pytest_process.argv(chosen), _NO_REPETITIONS]
        subprocess.run(words, stdout=log, stderr=subprocess.STDOUT, check=False)
    if not (request.report / events.FILE).exists():
        raise TestbedError(f"pytest started no test; see {request.report / 'pytest.log'}")
    return {each.id: each for each in report.build(events.read(request.report)).requirements}


def _results(name: str, entries: Sequence[Entry], rows: Mapping[str, RequirementReport]) -> list[MutantResult]:
    found = [(entry, rows.get(entry.requirement.id)) for entry in entries]
    return [replace(_result(name, entry.requirement.id, row), digest=digest(entry)) for entry, row in found]


def _result(name: str, requirement: str, row: RequirementReport | None) -> MutantResult:
    message = row.message.partition("\n")[0] if row else "it was not selected"
    return MutantResult(
        name, requirement, dead.answer_of(name, row and row.verdict), message, row.seconds if row else 0
    )
