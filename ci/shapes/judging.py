"""Run one shape and its twin on a testbed, and compare their verdicts with the table."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ci.mutants import suites
from ci.mutants.activation import MutableTestbed
from ci.mutants.matrix import CONTROL
from ci.shapes.table import Shape
from testbed import bringup, folders
from testbed.conformance import catalogue, profiles
from testbed.conformance.catalogue import Entry
from testbed.models.config import effective
from testbed.models.report import DriverConformanceReport
from testbed.models.requirement_enums import Verdict
from testbed.models.run_request import RunRequest
from testbed.progress import Progress

# What a correct driver may get. Its own requirements must pass.
_RIGHT = frozenset({Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.CLUSTER_UNSUPPORTED})
_PATIENCE_WITH_TWINS = 0.25
_WORKERS = 4
Verdicts = Mapping[str, Verdict | None]


@dataclass(frozen=True)
class Outcome:
    """What was wrong about the verdicts of a shape, in words; nothing if all were right."""

    shape: str
    passed: int
    seconds: float
    problems: tuple[str, ...]


def judge(shape: Shape, profile: str, work: Path) -> Outcome:
    """Run the shape with the requirements of a profile and its own, and then its twin."""
    began, entries = time.monotonic(), entries_of(shape, profile)
    with _testbed(shape) as target:
        right = _run(target, shape, entries, work / shape.name / "right", CONTROL)
        twin = _run(target, shape, entries, work / shape.name / "twin", shape.twin)
    problems = (*problems_of_shape(shape, verdicts(right)), *problems_of_twin(shape, verdicts(twin)))
    passed = sum(each is Verdict.PASS for each in verdicts(right).values())
    return Outcome(shape.name, passed, round(time.monotonic() - began, 1), problems)


def entries_of(shape: Shape, profile: str) -> list[Entry]:
    """Return the requirements about the driver that run for a shape."""
    wanted, own = profiles.profile(profile), frozenset(shape.own) | frozenset(shape.caught_by)
    found = catalogue.read([folders.data("suites")]).entries
    return [each for each in found if wanted.has(each.requirement.id) or each.requirement.id in own]


def verdicts(report: DriverConformanceReport) -> Verdicts:
    """Return the verdict of each requirement that was selected."""
    return {each.id: each.verdict for each in report.requirements if each.verdict is not Verdict.EXCLUDED}


def problems_of_shape(shape: Shape, seen: Verdicts) -> Iterator[str]:
    """Yield what is wrong about the verdicts of the correct driver."""
    for name, verdict in seen.items():
        if verdict not in _RIGHT:
            yield f"{name} is {verdict or 'not judged'} for a correct driver"
    for name in _lacking(shape.own, seen, Verdict.PASS):
        yield f"{name} is {seen.get(name) or 'not judged'}, and must pass: it is about this shape"


def problems_of_twin(shape: Shape, seen: Verdicts) -> Iterator[str]:
    """Yield what is wrong about the verdicts of the twin."""
    for name in _lacking(shape.caught_by, seen, Verdict.FAIL):
        yield f"{name} is {seen.get(name) or 'not judged'} for {shape.twin}, and must fail"
    for name, verdict in seen.items():
        if verdict not in _RIGHT and name not in shape.caught_by:
            yield f"{name} is {verdict or 'not judged'} for {shape.twin}, which is wrong about something else"


def _lacking(wanted: Collection[str], seen: Verdicts, verdict: Verdict) -> list[str]:
    return [name for name in wanted if seen.get(name) is not verdict]


@contextlib.contextmanager
def _testbed(shape: Shape) -> Iterator[MutableTestbed]:
    progress = Progress()
    config = replace(effective(None, {"driver": shape.driver_file}), name=f"shape-{shape.name}")
    made = bringup.bring_up(config, progress, ephemeral=True)
    try:
        yield MutableTestbed(made, fault="")
    finally:
        bringup.tear_down(made.name, progress)


def _run(
    target: MutableTestbed, shape: Shape, entries: list[Entry], folder: Path, mutant: str
) -> DriverConformanceReport:
    is_twin = mutant != CONTROL
    request = RunRequest(
        testbed=target.testbed.name,
        driver=Path(shape.driver_file),
        report=folder.absolute(),
        patience=_PATIENCE_WITH_TWINS if is_twin else 1.0,
        workers=_WORKERS,
        check=not is_twin,
    )
    with target.as_mutant(mutant):
        return suites.run(request, entries, repeats=not is_twin)
