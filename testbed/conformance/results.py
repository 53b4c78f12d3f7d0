"""The results of a run, one for the driver and one for the cluster, how much they cover, and the exit code. Pure functions.

`reporting` makes the report with them; `runs` and the plugin exit with the code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from testbed.conformance.profiles import SMOKE
from testbed.models.report import DriverConformanceReport, Judged, LevelCount, RequirementReport
from testbed.models.requirement_enums import Level, Result, Subject, Verdict
from testbed.models.run_request import FailOn

CLUSTER_PROFILE = "cluster"  # its driver is known to be right, so that each requirement judges the cluster
_NO_ANSWER = frozenset({None, Verdict.ERROR, Verdict.TIMEOUT, Verdict.BLOCKED})
_NOT_JUDGED = frozenset({Verdict.EXCLUDED, Verdict.CLUSTER_UNSUPPORTED})
_JUDGED = frozenset({Verdict.PASS, Verdict.FAIL, Verdict.FLAKY})
_FAILING: dict[FailOn, Collection[Level]] = {
    "must": [Level.MUST],
    "should": [Level.MUST, Level.SHOULD],
    "may": [Level.MUST, Level.SHOULD, Level.MAY],
}


@dataclass(frozen=True)
class Scope:
    """What a run judged as a whole. `tested` is False if no test had anything to judge.

    A `narrowed` run left out requirements on purpose, even if it passed over none that applies. A `read_only` run could create nothing.
    """

    finished: bool = True
    tested: bool = True
    narrowed: bool = False
    read_only: bool = False
    fail_on: FailOn = "must"


def subject_of(about: Subject, profile: str) -> Subject:
    """Return what a requirement judges in this profile."""
    return Subject.CLUSTER if profile == CLUSTER_PROFILE else about


def decisive_subject(profile: str) -> Subject:
    """Return whose result decides the exit code."""
    return subject_of(Subject.DRIVER, profile)


def is_only_about_cluster(about: Subject, profile: str) -> bool:
    """Return True if a requirement judges the cluster beside a driver that is not known to be right."""
    return about is Subject.CLUSTER and profile != CLUSTER_PROFILE


def is_narrowed(profile: str, *selections: object) -> bool:
    """Return True if a run with this profile and these selections of requirements is at best partial."""
    return profile == SMOKE or any(selections)


def was_tested(row: RequirementReport) -> bool:
    """Return True if a test ran and found something to judge."""
    return row.verdict in _JUDGED or (row.attempts > 0 and row.verdict is not Verdict.NOT_APPLICABLE)


def result_of(rows: Sequence[RequirementReport], scope: Scope) -> Result:
    """Return the first result that holds for the requirements about one subject."""
    if any(is_failure(row, scope.fail_on) for row in rows):
        return Result.FAILED
    if not scope.finished or not scope.tested or any(_leaves_open(row) for row in rows):
        return Result.INCOMPLETE
    if scope.read_only and not any(row.verdict is Verdict.EXCLUDED for row in rows) and any(map(was_tested, rows)):
        return Result.PUBLISHED
    if scope.narrowed or unjudged_musts(rows):
        return Result.PARTIAL
    return Result.CONFORMANT


def is_failure(row: RequirementReport, fail_on: FailOn) -> bool:
    """Return True if the requirement failed and is of a level that decides the result."""
    return row.verdict is Verdict.FAIL and row.level in _FAILING[fail_on]


def unjudged_musts(rows: Iterable[RequirementReport]) -> list[RequirementReport]:
    """Return the applicable MUST requirements that were not judged."""
    return [row for row in rows if row.level is Level.MUST and row.verdict in _NOT_JUDGED]


def count(rows: Sequence[RequirementReport]) -> Judged:
    """Return how many of the applicable requirements passed, by level."""
    by_level = {level.lower(): _count_level(rows, level) for level in Level}
    return Judged(**by_level, exempt=sum(row.exempt for row in rows))


def describe(judged: Judged) -> str:
    """Return the counts in one line: `MUST 131 of 131, SHOULD 18 of 20, exempt 4`."""
    counts = {"MUST": judged.must, "SHOULD": judged.should, "MAY": judged.may}
    shown = [
        f"{level} {each.passed} of {each.applicable}"
        for level, each in counts.items()
        if each.applicable or level == "MUST"
    ]
    return ", ".join([*shown, *([f"exempt {judged.exempt}"] if judged.exempt else [])])


def describe_known(row: RequirementReport) -> list[str]:
    """Return the line that says why a failure is known; none if it is not."""
    if not row.known:
        return []
    until = f", until {row.known.until}" if row.known.until else ""
    return [f"known: {row.known.reason}{f' ({row.known.link})' if row.known.link else ''}{until}"]


def count_verdicts(rows: Iterable[RequirementReport]) -> str:
    """Return the number of requirements for each verdict in one line: `131 pass, 4 not-applicable`."""
    verdicts = [row.verdict for row in rows]
    return ", ".join(f"{verdicts.count(each)} {each or 'no verdict'}" for each in (*Verdict, None) if each in verdicts)


def exit_code(report: DriverConformanceReport) -> int:
    """Return the exit code of `dra-testbed run`. Requirements about the cluster never decide it, except in the profile cluster.

    With --known, known failures do not count, but entries of `known` that do not hold any more do.
    """
    rows = [row for row in report.requirements if row.about is decisive_subject(report.profile)]
    if report.request.known and any(outdated(row, report.generated.at) for row in rows):
        return 1
    failures = [row for row in rows if is_failure(row, report.request.fail_on)]
    if not all(report.request.known and row.known for row in failures):
        return 1
    if report.result is Result.INCOMPLETE or not report.finished or any(map(_leaves_open, rows)):
        # The error that stopped a run may be about the cluster.
        seen = rows if report.finished else report.requirements
        return 3 if any(row.verdict is Verdict.ERROR for row in seen) else 4
    return 0


def outdated(row: RequirementReport, at: str) -> str:
    """Explain why an entry of `known` in the driver file does not hold any more in a run that started then; '' if it does."""
    if row.known and row.verdict is Verdict.PASS:
        return f"{row.id} passes now: remove it from spec.known of the driver file"
    if row.known and row.known.until and row.verdict is Verdict.FAIL and row.known.until < at[:10]:
        return f"{row.id} was to be fixed by {row.known.until}: fix it, or change spec.known of the driver file"
    return ""


def _leaves_open(row: RequirementReport) -> bool:
    return row.verdict in _NO_ANSWER or (row.verdict is Verdict.FLAKY and row.level is Level.MUST)


def _count_level(rows: Sequence[RequirementReport], level: Level) -> LevelCount:
    verdicts = [row.verdict for row in rows if row.level is level and row.verdict is not Verdict.NOT_APPLICABLE]
    return LevelCount(passed=verdicts.count(Verdict.PASS), applicable=len(verdicts))
