"""Rules for verdicts: of one exception, and of several attempts. The type of an exception decides who is to blame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from testbed.errors import Blocked, DriverFailed, NothingToJudge
from testbed.models.requirement_enums import Verdict

REPETITIONS = 3  # how often a test that failed has to pass alone to be flaky
INTERRUPTIONS = (
    2  # attempts that a failing component of the cluster may interrupt; then the test is not repeated any more
)
_WORST_FIRST = (
    *(Verdict.FAIL, Verdict.ERROR, Verdict.TIMEOUT, Verdict.BLOCKED, Verdict.FLAKY),
    *(Verdict.NOT_APPLICABLE, Verdict.PASS),
)


@dataclass(frozen=True)
class Attempt:
    """One run of a test: its verdict, and the component of the cluster that failed meanwhile, if one did."""

    verdict: Verdict
    component: str = ""


def verdict_for(raised: BaseException, *, before_the_test: bool = False, about_cluster: bool = False) -> Verdict:
    """Return the verdict for a test that raised. Only assertions and DriverFailed are failures, everything else is an error.

    A requirement that is only `about_cluster` cannot be judged if the driver failed.
    """
    if isinstance(raised, NothingToJudge):
        return Verdict.NOT_APPLICABLE
    if is_observation(raised):
        is_blocked = before_the_test or (about_cluster and isinstance(raised, DriverFailed) and raised.by_driver)
        return Verdict.BLOCKED if is_blocked else Verdict.FAIL
    if isinstance(raised, Blocked):
        return Verdict.BLOCKED
    if str(raised).startswith("Timeout (>"):  # of pytest-timeout; other errors may quote it
        return Verdict.TIMEOUT
    return Verdict.ERROR


def is_observation(raised: BaseException) -> bool:
    """Return True if the test observed that the requirement is not met. Otherwise it could not observe anything."""
    return isinstance(raised, AssertionError | DriverFailed)


def decisive_exception(raised: BaseException) -> BaseException:
    """Return the exception that decides the verdict: a failure that was seen, even if clean-up then failed, otherwise the first error.

    pytest lists the first of several clean-up errors last.
    """
    if isinstance(raised, NothingToJudge | Blocked):
        return raised
    every = list(_with_contexts(raised))
    return next(filter(is_observation, every), every[0])


def _with_contexts(raised: BaseException) -> Iterator[BaseException]:
    """Yield the exception, those of a group, and those that were being handled when it was raised; not those that it translates."""
    if isinstance(raised, BaseExceptionGroup):
        for each in reversed(raised.exceptions):
            yield from _with_contexts(each)
        return
    yield raised
    if raised.__context__ and not raised.__suppress_context__:
        yield from _with_contexts(raised.__context__)


def uninterrupted(attempts: Sequence[Attempt]) -> list[Verdict]:
    """Return the verdicts of the attempts during which no component failed; of all attempts if there is no other."""
    whole = [each.verdict for each in attempts if not _is_interrupted(each)]
    return whole or [each.verdict for each in attempts]


def needs_another_attempt(attempts: Sequence[Attempt], *, is_repeatable: bool) -> bool:
    """Return True if a test has to run again before it can be judged.

    An interrupted test runs again once. A failure is repeated only if the test `is_repeatable`.
    """
    if sum(bool(each.component) for each in attempts) >= INTERRUPTIONS:
        return False
    if all(map(_is_interrupted, attempts)):
        return True
    return is_repeatable and needs_repetition(uninterrupted(attempts))


def _is_interrupted(attempt: Attempt) -> bool:
    return bool(attempt.component) and attempt.verdict is Verdict.ERROR


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
