"""What is known of a peer's differences, and what a run's verdicts say beside it. Pure; for the page and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from testbed.models.report import DriverConformanceReport, RequirementReport
from testbed.models.strict import Strict, load
from testbed.models.words import Verdict

_FREE = frozenset({Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.CLUSTER_UNSUPPORTED, Verdict.EXCLUDED})


class Difference(Strict):
    """One reason why requirements are not met, understood by somebody who read the sources."""

    requirements: tuple[str, ...]
    whose: Literal["theirs", "design", "ours"]
    what: str
    source: str


class Known(Strict):
    """A file of differences."""

    about: str
    source: str
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Judged:
    """A peer: what is known of it, and the newest verdict of each requirement."""

    known: Known
    verdicts: Mapping[str, RequirementReport]

    @property
    def failed(self) -> dict[str, RequirementReport]:
        """What cost something."""
        return {name: each for name, each in self.verdicts.items() if each.verdict not in _FREE}

    @property
    def unexplained(self) -> list[RequirementReport]:
        """Differences that nobody has understood yet."""
        return [each for name, each in self.failed.items() if name not in self._explained()]

    @property
    def outdated(self) -> list[str]:
        """Differences that are told and are none any more. What was not run says nothing."""
        passed = {name for name, each in self.verdicts.items() if each.verdict == Verdict.PASS}
        return sorted(self._explained() & passed)

    def _explained(self) -> frozenset[str]:
        return frozenset(name for each in self.known.differences for name in each.requirements)


def read(path: Path) -> Known:
    """The file of differences."""
    return load(path, Known)


def newest(reports: Iterable[DriverConformanceReport]) -> dict[str, RequirementReport]:
    """The verdicts of several runs in parts, of the same driver file and the same requirements as the last one."""
    ordered = sorted(reports, key=lambda each: each.generated.at)
    found: dict[str, RequirementReport] = {}
    for report in (each for each in ordered if _alike(each, ordered[-1])):
        found |= {each.id: each for each in report.requirements if found.get(each.id) is None or _says(each)}
    return found


def counted(verdicts: Iterable[RequirementReport]) -> Sequence[tuple[str, int]]:
    """How many have which verdict, in the order of verdicts."""
    said = [each.verdict for each in verdicts]
    return [(each.value, said.count(each)) for each in Verdict if each in said] + [("none", said.count(None))] * (
        None in said
    )


def _says(each: RequirementReport) -> bool:
    return each.verdict not in (None, Verdict.EXCLUDED)


def _alike(one: DriverConformanceReport, other: DriverConformanceReport) -> bool:
    return (one.generated.catalogue, one.subject.digest) == (other.generated.catalogue, other.subject.digest)
