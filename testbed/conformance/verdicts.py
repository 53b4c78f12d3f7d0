"""Rules for verdicts: of one exception, of several attempts, of a whole run. The type of an exception decides who is to blame."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from testbed.errors import Blocked, DriverFailed, NothingToJudge
from testbed.models.report import DriverConformanceReport
from testbed.models.requirement_enums import Level, Result, Subject, Verdict
from testbed.models.run_request import FailOn


@dataclass(frozen=True)
class Judged:
    """A requirement's level and verdict, None if it has none. If only some cases of it were tested, it is excluded, too.

    `tested` is False if no test ran, or if it found nothing to judge.
    """

    level: Level
    verdict: Verdict | None
    tested: bool = False


_WORST_FIRST = (
    *(Verdict.FAIL, Verdict.ERROR, Verdict.TIMEOUT, Verdict.BLOCKED, Verdict.FLAKY),
    *(Verdict.NOT_APPLICABLE, Verdict.PASS),
)
_EXECUTED = frozenset({Verdict.PASS, Verdict.FAIL, Verdict.FLAKY})
_UNDECIDED = frozenset({None, Verdict.ERROR, Verdict.TIMEOUT, Verdict.BLOCKED})
_WRONG = frozenset({Verdict.FAIL, Verdict.FLAKY})
_FAILING: dict[FailOn, Collection[Level]] = {
    "must": [Level.MUST],
    "should": [Level.MUST, Level.SHOULD],
    "may": [Level.MUST, Level.SHOULD, Level.MAY],
}


def verdict_for(raised: BaseException, about: Subject = Subject.DRIVER, *, before_the_test: bool = False) -> Verdict:
    """Return the verdict for a test that raised. Only assertions and DriverFailed blame the driver, everything else is an error.

    A failed requirement about the cluster is never the driver's failure.
    """
    if isinstance(raised, NothingToJudge):
        return Verdict.NOT_APPLICABLE
    if is_observation(raised):
        if before_the_test:
            return Verdict.BLOCKED
        return Verdict.FAIL if about is Subject.DRIVER else Verdict.ERROR
    if isinstance(raised, Blocked):
        return Verdict.BLOCKED
    if "from pytest-timeout" in str(raised):
        return Verdict.TIMEOUT
    return Verdict.ERROR


def is_observation(raised: BaseException) -> bool:
    """Return True if the test observed that the requirement is not met. Otherwise it could not observe anything."""
    return isinstance(raised, AssertionError | DriverFailed)


def verdict_of_attempts(attempts: Sequence[Verdict]) -> Verdict:
    """Return the verdict of a test that ran several times. A failure before a pass is flaky; errors are not failures.

    A failure without a later pass stays a failure, even if an error follows.
    """
    last = attempts[-1]
    if Verdict.FAIL in attempts:
        return Verdict.FLAKY if last is Verdict.PASS else Verdict.FAIL
    return last


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict: of the tests of a requirement, or of the phases of a test."""
    given = set(verdicts)
    return next(each for each in _WORST_FIRST if each in given)


def result_of(judged: Sequence[Judged], *, finished: bool = True) -> Result:
    """Return the result of a run. A failed MUST decides it; otherwise anything undecided makes it incomplete."""
    if any(each.verdict in _WRONG and each.level is Level.MUST for each in judged):
        return Result.NON_CONFORMANT
    executed = any(each.tested or each.verdict in _EXECUTED for each in judged)
    if not finished or not executed or any(each.verdict in _UNDECIDED for each in judged):
        return Result.INCOMPLETE
    if any(each.verdict in _WRONG or each.verdict is Verdict.EXCLUDED for each in judged):
        return Result.PARTIAL
    return Result.CONFORMANT


def exit_code(report: DriverConformanceReport) -> int:
    """Return the exit code of `dra-testbed run`. A failure that --fail-on includes comes first, even if something else is undecided."""
    if any(row.verdict in _WRONG and row.level in _FAILING[report.request.fail_on] for row in report.requirements):
        return 1
    if report.result is Result.INCOMPLETE:
        return 3 if any(row.verdict is Verdict.ERROR for row in report.requirements) else 4
    return 0
