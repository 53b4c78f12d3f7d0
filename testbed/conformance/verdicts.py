"""How verdicts are found, how many become one, and what they mean together. Blame is decided by the type of what was raised."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from testbed.errors import Blocked, DriverFailed, NothingToJudge
from testbed.models.report import DriverConformanceReport
from testbed.models.requirement_enums import Level, Result, Subject, Verdict
from testbed.models.run_request import FailOn


@dataclass(frozen=True)
class Judged:
    """A requirement's level and its verdict; None when it never got one. One of which only some cases were tested is excluded, too.

    `tested` says that something was judged: a test that found nothing to judge does not count.
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


def blame(raised: BaseException, about: Subject = Subject.DRIVER, *, before_the_test: bool = False) -> Verdict:
    """Whose fault it is. The driver's: an assertion, or DriverFailed (an observation that did not come). All else is ours.

    Where a requirement is about the cluster, the driver is out of it. Where there was nothing to judge, nobody is to blame.
    """
    if isinstance(raised, NothingToJudge):
        return Verdict.NOT_APPLICABLE
    if observed(raised):
        if before_the_test:
            return Verdict.BLOCKED
        return Verdict.FAIL if about is Subject.DRIVER else Verdict.ERROR
    if isinstance(raised, Blocked):
        return Verdict.BLOCKED
    if "from pytest-timeout" in str(raised):
        return Verdict.TIMEOUT
    return Verdict.ERROR


def observed(raised: BaseException) -> bool:
    """Whether what is required was seen not to be so, whoever is to blame for it. All else is a test that could not look."""
    return isinstance(raised, AssertionError | DriverFailed)


def settle(attempts: Sequence[Verdict]) -> Verdict:
    """One test that was tried several times: failed once and passed at last is flaky, never a pass. Our own errors are no failures.

    A failure that no pass has followed stays one, whatever error of ours came after it.
    """
    last = attempts[-1]
    if Verdict.FAIL in attempts:
        return Verdict.FLAKY if last is Verdict.PASS else Verdict.FAIL
    return last


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Several tests (or phases of one) behind one requirement: it is as good as the worst of them."""
    given = set(verdicts)
    return next(each for each in _WORST_FIRST if each in given)


def overall(judged: Sequence[Judged], *, finished: bool = True) -> Result:
    """The whole run. A failed MUST is a fact whatever else happened; without one, anything undecided leaves the run incomplete."""
    if any(each.verdict in _WRONG and each.level is Level.MUST for each in judged):
        return Result.NON_CONFORMANT
    executed = any(each.tested or each.verdict in _EXECUTED for each in judged)
    if not finished or not executed or any(each.verdict in _UNDECIDED for each in judged):
        return Result.INCOMPLETE
    if any(each.verdict in _WRONG or each.verdict is Verdict.EXCLUDED for each in judged):
        return Result.PARTIAL
    return Result.CONFORMANT


def exit_code(report: DriverConformanceReport) -> int:
    """Return what `dra-testbed run` ends with. A failure on which it is to fail comes first, even if something else is undecided."""
    if any(row.verdict in _WRONG and row.level in _FAILING[report.request.fail_on] for row in report.requirements):
        return 1
    if report.result is Result.INCOMPLETE:
        return 3 if any(row.verdict is Verdict.ERROR for row in report.requirements) else 4
    return 0
