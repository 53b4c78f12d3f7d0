"""Compare the explained differences of a peer with the verdicts of its reports. Pure; for the page and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from testbed.models.report import DriverConformanceReport, Environment, RequirementReport
from testbed.models.requirement_enums import Verdict
from testbed.models.strict import Strict, load

NOT_JUDGED = frozenset({Verdict.NOT_APPLICABLE, Verdict.CLUSTER_UNSUPPORTED, Verdict.EXCLUDED, None})
_FREE = {Verdict.PASS, *NOT_JUDGED} - {None}  # None: the run ended before the verdict


class Difference(Strict):
    """A reason why requirements fail, found by reading the sources of the driver."""

    requirements: tuple[str, ...]
    whose: Literal["theirs", "design", "ours"]
    what: str
    source: str


class Known(Strict):
    """The content of a file in ci/peers/explained."""

    about: str
    source: str
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Judged:
    """A peer: its explained differences, the latest verdict of each requirement, and the environment."""

    known: Known
    verdicts: Mapping[str, RequirementReport]
    where: Environment | None = None

    @property
    def tested(self) -> bool:
        """Return True if at least one requirement was judged."""
        return any(each.verdict not in NOT_JUDGED for each in self.verdicts.values())

    @property
    def failed(self) -> dict[str, RequirementReport]:
        """Return the requirements that failed or have no verdict."""
        return {name: each for name, each in self.verdicts.items() if each.verdict not in _FREE}

    @property
    def unexplained(self) -> list[RequirementReport]:
        """Return the failed requirements without explanation. An explanation covers the verdict `fail`, but no error or timeout."""
        explained = self._explained() & self._failing()
        return [each for name, each in self.failed.items() if name not in explained]

    @property
    def outdated(self) -> list[str]:
        """Return the explained requirements that pass now."""
        passed = {name for name, each in self.verdicts.items() if each.verdict == Verdict.PASS}
        return sorted(self._explained() & passed)

    def not_failed(self, difference: Difference) -> list[str]:
        """Return the requirements of a difference that did not fail in these runs."""
        return [name for name in difference.requirements if name not in self._failing()]

    def _failing(self) -> frozenset[str]:
        return frozenset(name for name, each in self.verdicts.items() if each.verdict is Verdict.FAIL)

    def _explained(self) -> frozenset[str]:
        return frozenset(name for each in self.known.differences for name in each.requirements)


def read(path: Path) -> Known:
    """Read a file of differences."""
    return load(path, Known)


def comparable(reports: Iterable[DriverConformanceReport]) -> list[DriverConformanceReport]:
    """Return the reports about the same driver file, requirements and cluster as the last one, in order of time."""
    ordered = sorted(reports, key=lambda each: each.generated.at)
    return [each for each in ordered if _about(each) == _about(ordered[-1])]


def newest(reports: Iterable[DriverConformanceReport]) -> dict[str, RequirementReport]:
    """Return the latest verdict of each requirement in the comparable reports."""
    found: dict[str, RequirementReport] = {}
    for report in comparable(reports):
        found |= {
            each.id: each
            for each in report.requirements
            if each.id not in found or _weight(each) >= _weight(found[each.id])
        }
    return found


def counted(verdicts: Iterable[RequirementReport]) -> Sequence[tuple[str, int]]:
    """Return the number of requirements for each verdict, in the order of verdicts."""
    given = [each.verdict for each in verdicts]
    return [(each.value, given.count(each)) for each in Verdict if each in given] + [("none", given.count(None))] * (
        None in given
    )


def _weight(each: RequirementReport) -> int:
    """Return how much a verdict counts: an excluded requirement less than one that was started, and that less than a verdict."""
    return {Verdict.EXCLUDED: 0, None: 1}.get(each.verdict, 2)


def _about(report: DriverConformanceReport) -> tuple[str, str, Environment]:
    # Another Kubernetes version, gate or number of nodes changes verdicts. The name of the testbed is different in each run.
    where = report.environment.model_copy(update={"testbed": ""})
    return report.generated.catalogue, report.subject.digest, where
