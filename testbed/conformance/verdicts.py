"""Rules for verdicts: of one exception, and of several attempts. The type of an exception decides who is to blame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from testbed.errors import Blocked, DriverFailed, NothingToJudge
from testbed.models.requirement_enums import Verdict

REPETITIONS = 3  # how often a test that failed has to pass alone to be flaky
_WORST_FIRST = (
    *(Verdict.FAIL, Verdict.ERROR, Verdict.TIMEOUT, Verdict.BLOCKED, Verdict.FLAKY),
    *(Verdict.NOT_APPLICABLE, Verdict.PASS),
)


def verdict_for(raised: BaseException, *, before_the_test: bool = False) -> Verdict:
    """Return the verdict for a test that raised. Only assertions and DriverFailed are failures, everything else is an error."""
    if isinstance(raised, NothingToJudge):
        return Verdict.NOT_APPLICABLE
    if is_observation(raised):
        return Verdict.BLOCKED if before_the_test else Verdict.FAIL
    if isinstance(raised, Blocked):
        return Verdict.BLOCKED
    if str(raised).startswith("Timeout (>"):  # of pytest-timeout; other errors may quote it
        return Verdict.TIMEOUT
    return Verdict.ERROR


def is_observation(raised: BaseException) -> bool:
    """Return True if the test observed that the requirement is not met. Otherwise it could not observe anything."""
    return isinstance(raised, AssertionError | DriverFailed)


def needs_repetition(attempts: Sequence[Verdict]) -> bool:
    """Return True if a test failed first, and passed in all of its repetitions, but not in enough of them to be flaky."""
    return attempts[0] is Verdict.FAIL and {*attempts[1:]} <= {Verdict.PASS} and len(attempts) <= REPETITIONS


def verdict_of_attempts(attempts: Sequence[Verdict]) -> Verdict:
    """Return the verdict of a test that ran several times. A failure before a pass is flaky; errors are not failures.

    A second failure decides, and a failure without a later pass stays a failure, even if an error follows.
    """
    last = attempts[-1]
    if Verdict.FAIL in attempts:
        return Verdict.FLAKY if last is Verdict.PASS and attempts.count(Verdict.FAIL) == 1 else Verdict.FAIL
    return last


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict: of the tests of a requirement, or of the phases of a test."""
    given = set(verdicts)
    return next(each for each in _WORST_FIRST if each in given)
