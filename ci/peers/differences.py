"""What is known of a peer's differences, and what a run's verdicts say beside it. Pure; for the page and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from testbed.models.report import DriverConformanceReport, Environment, RequirementReport
from testbed.models.strict import Strict, load
from testbed.models.words import Verdict

NOT_JUDGED = frozenset({Verdict.NOT_APPLICABLE, Verdict.CLUSTER_UNSUPPORTED, Verdict.EXCLUDED, None})
_FREE = {Verdict.PASS, *NOT_JUDGED} - {None}  # a run that ended too early costs something


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
    """A peer: what is known of it, the newest verdict of each requirement, and where they were seen."""

    known: Known
    verdicts: Mapping[str, RequirementReport]
    where: Environment | None = None

    @property
    def tested(self) -> bool:
        """Whether anything was judged at all."""
        return any(each.verdict not in NOT_JUDGED for each in self.verdicts.values())

    @property
    def failed(self) -> dict[str, RequirementReport]:
        """What cost something."""
        return {name: each for name, each in self.verdicts.items() if each.verdict not in _FREE}

    @property
    def unexplained(self) -> list[RequirementReport]:
        """Differences that nobody has understood yet. An explanation is about a driver that fails, not about a test that could not look."""
        understood = self._explained() & self._failing()
        return [each for name, each in self.failed.items() if name not in understood]

    @property
    def outdated(self) -> list[str]:
        """Differences that are told and are none any more. What was not run says nothing."""
        passed = {name for name, each in self.verdicts.items() if each.verdict == Verdict.PASS}
        return sorted(self._explained() & passed)

    def unseen(self, difference: Difference) -> list[str]:
        """What is told of a driver and did not fail in these runs."""
        return [name for name in difference.requirements if name not in self._failing()]

    def _failing(self) -> frozenset[str]:
        return frozenset(name for name, each in self.verdicts.items() if each.verdict is Verdict.FAIL)

    def _explained(self) -> frozenset[str]:
        return frozenset(name for each in self.known.differences for name in each.requirements)


def read(path: Path) -> Known:
    """The file of differences."""
    return load(path, Known)


def alike(reports: Iterable[DriverConformanceReport]) -> list[DriverConformanceReport]:
    """Those about the same driver file, the same requirements and the same cluster as the last one, which comes last."""
    ordered = sorted(reports, key=lambda each: each.generated.at)
    return [each for each in ordered if _about(each) == _about(ordered[-1])]


def newest(reports: Iterable[DriverConformanceReport]) -> dict[str, RequirementReport]:
    """The verdicts of several runs in parts, as far as they are alike."""
    found: dict[str, RequirementReport] = {}
    for report in alike(reports):
        found |= {
            each.id: each
            for each in report.requirements
            if each.id not in found or _says(each) >= _says(found[each.id])
        }
    return found


def counted(verdicts: Iterable[RequirementReport]) -> Sequence[tuple[str, int]]:
    """How many have which verdict, in the order of verdicts."""
    said = [each.verdict for each in verdicts]
    return [(each.value, said.count(each)) for each in Verdict if each in said] + [("none", said.count(None))] * (
        None in said
    )


def _says(each: RequirementReport) -> int:
    """How much. What was left out says nothing, what was begun and not ended at least that it is open."""
    return {Verdict.EXCLUDED: 0, None: 1}.get(each.verdict, 2)


def _about(report: DriverConformanceReport) -> tuple[str, str, Environment]:
    # Another Kubernetes, a gate or a node less makes other verdicts. The testbed has a new name in each run.
    where = report.environment.model_copy(update={"testbed": ""})
    return report.generated.catalogue, report.subject.digest, where
