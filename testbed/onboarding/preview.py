"""What a run would judge of a driver, and why not the rest, from its driver file and a Kubernetes version alone. For `driver show`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from testbed import folders
from testbed.binaries import lock_for
from testbed.conformance import catalogue, selection
from testbed.conformance.facts import expected_facts
from testbed.conformance.results import subject_of
from testbed.conformance.selection import Choice
from testbed.models.driver_file import DriverFile
from testbed.models.features import DECLARED, DERIVED, EXEMPTIBLE, declaring_key
from testbed.models.gates import check_gates
from testbed.models.requirement_enums import Level, Subject

_NODES = 2  # as `run` makes by default


@dataclass(frozen=True)
class Preview:
    """The choices about all requirements of a profile. Every ability of a cluster is assumed."""

    driver_file: DriverFile
    kubernetes: str
    profile: str
    choices: tuple[Choice, ...]

    @property
    def features(self) -> Iterator[tuple[str, str, str]]:
        """Yield each feature, `yes`, `no` or `exempt`, and the key of the driver file that declares it."""
        declared = self.driver_file.features
        for name in (*DECLARED, *DERIVED):
            yield name, "yes" if name in declared else "no", declaring_key(name)
        for name in EXEMPTIBLE:
            yield name, "yes" if name in declared else "exempt", "spec.exempt"

    def judged(self, about: Subject) -> list[Choice]:
        """Return the requirements about the driver, or about the cluster, that would be judged."""
        return [each for each in self._about(about) if not each.verdict]

    def reasons(self, about: Subject) -> dict[str, list[Choice]]:
        """Return the other requirements by the reason why they would not be judged; the reason with the most comes first."""
        found: dict[str, list[Choice]] = {}
        for each in self._about(about):
            if each.verdict:
                found.setdefault(each.reason, []).append(each)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    def as_data(self) -> list[dict[str, object]]:
        """Return a row for each requirement."""
        return [
            {
                "id": each.requirement.id,
                "level": each.requirement.level,
                "about": subject_of(each.requirement.about, self.profile),
                "judged": each.verdict is None,
                "verdict": each.verdict,
                "reason": each.reason,
                "exempt": each.exempt,
                "sentence": each.requirement.sentence,
            }
            for each in self.choices
        ]

    def _about(self, about: Subject) -> Iterator[Choice]:
        return (each for each in self.choices if subject_of(each.requirement.about, self.profile) is about)


def preview(driver_file: DriverFile, kubernetes: str, profile: str, gates: Mapping[str, bool] | None = None) -> Preview:
    """Return what a run on a cluster of this version and with these changed gates would judge. UsageError for a wrong version or gate."""
    lock = lock_for(kubernetes)
    check_gates(gates or {}, lock.gates)
    given, claim = driver_file.given, driver_file.devices.claim
    facts = expected_facts(lock.kubernetes, _NODES, driver_file.features, gates, given=given, claim=claim)
    every = [entry.requirement for entry in catalogue.read([folders.data("suites")]).entries]
    return Preview(driver_file, lock.kubernetes, profile, tuple(selection.plan(every, facts, profile=profile)))


def count_levels(choices: Sequence[Choice]) -> str:
    """Return the number of requirements of each level: `MUST 40, SHOULD 5`."""
    counts = Counter(each.requirement.level for each in choices)
    return ", ".join(f"{level} {counts[level]}" for level in Level if counts[level]) or "none"
