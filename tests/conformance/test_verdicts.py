from __future__ import annotations

import pytest

from testbed.conformance.verdicts import (
    Attempt,
    decisive_exception,
    is_observation,
    needs_another_attempt,
    needs_repetition,
    uninterrupted,
    verdict_for,
    verdict_of_attempts,
    worst,
)
from testbed.errors import ApiError, Blocked, CommandFailed, DriverFailed, NothingToJudge, TestbedError, WaitTimeout
from testbed.models.requirement_enums import Verdict
from testbed.vocabulary.observing.observation import NotObserved


@pytest.mark.parametrize(
    ("raised", "verdict"),
    [
        (DriverFailed("the driver publishes no device"), Verdict.BLOCKED),
        (NotObserved("the driver refused to prepare", by_driver=True), Verdict.BLOCKED),
        (NotObserved("the pod is not bound"), Verdict.FAIL),
        (AssertionError("assert a == b"), Verdict.FAIL),
    ],
)
def test_a_failure_of_the_driver_leaves_a_requirement_about_the_cluster_open(
    raised: Exception, verdict: Verdict
) -> None:
    assert verdict_for(raised, about_cluster=True) is verdict
    assert verdict_for(raised) is Verdict.FAIL


@pytest.mark.parametrize("raised", [AssertionError("no"), DriverFailed("no"), NotObserved("no")])
def test_assertions_and_missing_observations_are_failures(raised: Exception) -> None:
    assert verdict_for(raised) is Verdict.FAIL
    assert verdict_for(raised, before_the_test=True) is Verdict.BLOCKED


@pytest.mark.parametrize("raised", [AssertionError("no"), DriverFailed("no"), NotObserved("no")])
def test_observations_differ_from_errors(raised: Exception) -> None:
    assert is_observation(raised)
    assert not is_observation(ApiError("GET /", 0, "", "no answer"))


@pytest.mark.parametrize(
    "raised",
    [
        ApiError("GET /", 0, "", "refused"),
        ApiError("GET /", 500, "", "broken"),
        CommandFailed(["x"], "exit 1", ""),
        WaitTimeout("image", "1 s", "nothing"),
        TestbedError("?"),
        KeyError("x"),
        OSError("disk"),
        MemoryError(),
    ],
)
def test_everything_else_is_an_error(raised: Exception) -> None:
    assert verdict_for(raised) is Verdict.ERROR
    assert verdict_for(raised, before_the_test=True) is Verdict.ERROR


def test_a_test_that_pytest_timeout_stopped_is_a_timeout() -> None:
    assert verdict_for(pytest.fail.Exception("Timeout (>300.0s) from pytest-timeout.")) is Verdict.TIMEOUT
    assert verdict_for(CommandFailed(["sh"], "exit code 1", "Timeout (>1s) from pytest-timeout.")) is Verdict.ERROR


def test_a_failure_before_a_pass_is_flaky() -> None:
    assert verdict_of_attempts([Verdict.FAIL, Verdict.PASS]) is Verdict.FLAKY
    assert verdict_of_attempts([Verdict.ERROR, Verdict.PASS]) is Verdict.PASS
    assert verdict_of_attempts([Verdict.PASS, Verdict.FAIL]) is Verdict.FAIL
    assert verdict_of_attempts([Verdict.PASS]) is Verdict.PASS


def test_an_error_does_not_hide_a_failure() -> None:
    assert verdict_of_attempts([Verdict.FAIL, Verdict.ERROR]) is Verdict.FAIL
    assert verdict_of_attempts([Verdict.FAIL, Verdict.TIMEOUT, Verdict.BLOCKED]) is Verdict.FAIL
    assert verdict_of_attempts([Verdict.FAIL, Verdict.ERROR, Verdict.PASS]) is Verdict.FLAKY
    assert verdict_of_attempts([Verdict.ERROR, Verdict.TIMEOUT]) is Verdict.TIMEOUT


def test_a_test_that_finds_nothing_to_judge_is_not_applicable() -> None:
    assert verdict_for(NothingToJudge("no parts")) is Verdict.NOT_APPLICABLE
    assert verdict_for(NothingToJudge("no parts"), before_the_test=True) is Verdict.NOT_APPLICABLE
    assert not is_observation(NothingToJudge("no parts"))
    assert worst([Verdict.PASS, Verdict.NOT_APPLICABLE]) is Verdict.NOT_APPLICABLE
    assert worst([Verdict.FLAKY, Verdict.NOT_APPLICABLE]) is Verdict.FLAKY


def test_a_failure_is_the_worst_verdict_and_a_pass_the_best() -> None:
    tried = [Verdict.PASS, Verdict.FAIL, Verdict.ERROR, Verdict.TIMEOUT, Verdict.BLOCKED, Verdict.FLAKY]
    assert worst(tried) is Verdict.FAIL
    for verdict in tried:
        assert worst([verdict, Verdict.PASS]) is verdict


def test_a_failure_is_repeated_until_it_fails_again_or_has_passed_three_times() -> None:
    fail, passed = Verdict.FAIL, Verdict.PASS
    repeated = [[fail], [fail, passed], [fail, passed, passed]]
    judged = [[fail, fail], [fail, passed, fail], [fail, passed, passed, passed], [fail, Verdict.ERROR], [passed]]
    assert all(map(needs_repetition, repeated))
    assert not any(map(needs_repetition, judged))
    assert [verdict_of_attempts(each) for each in judged] == [fail, fail, Verdict.FLAKY, fail, passed]


def test_a_second_failure_is_never_flaky() -> None:
    assert verdict_of_attempts([Verdict.FAIL, Verdict.FAIL, Verdict.PASS]) is Verdict.FAIL


def _raised_during_clean_up_of(seen: Exception, then: BaseException) -> BaseException:
    try:
        try:
            raise seen
        finally:
            raise then
    except BaseException as raised:  # noqa: BLE001 - as pytest does
        return raised


@pytest.mark.parametrize(
    "then", [ApiError("GET /", 0, "", "no answer"), pytest.fail.Exception("Timeout (>300.0s) from pytest-timeout.")]
)
def test_a_failure_that_was_seen_decides_even_if_clean_up_fails_or_times_out(then: BaseException) -> None:
    seen = AssertionError("two containers share a device")
    assert decisive_exception(_raised_during_clean_up_of(seen, then)) is seen
    group = BaseExceptionGroup("errors while tearing down", [seen, then])
    assert decisive_exception(group) is seen


def test_without_a_failure_the_first_clean_up_error_decides() -> None:
    first = ApiError("GET /", 0, "", "no answer")
    assert decisive_exception(BaseExceptionGroup("errors", [TestbedError("later"), first])) is first


def test_an_error_that_translates_another_one_decides_itself() -> None:
    translated = TestbedError("the image is missing")
    translated.__context__ = translated.__cause__ = DriverFailed("no pod runs")
    assert decisive_exception(translated) is translated
    blocked = _raised_during_clean_up_of(AssertionError("no"), Blocked("no node"))
    assert decisive_exception(blocked) is blocked


_INTERRUPTED = Attempt(Verdict.ERROR, "kube-scheduler")
_FAILED, _PASSED = Attempt(Verdict.FAIL), Attempt(Verdict.PASS)


def test_a_test_that_a_failing_component_interrupted_runs_again_once() -> None:
    for is_repeatable in (True, False):
        assert needs_another_attempt([_INTERRUPTED], is_repeatable=is_repeatable)
        assert not needs_another_attempt([_INTERRUPTED, _INTERRUPTED], is_repeatable=is_repeatable)
        assert not needs_another_attempt([_INTERRUPTED, _PASSED], is_repeatable=is_repeatable)
        assert not needs_another_attempt([_INTERRUPTED, Attempt(Verdict.FAIL, "kubelet")], is_repeatable=is_repeatable)
    assert needs_another_attempt([_INTERRUPTED, _FAILED], is_repeatable=True)
    assert not needs_another_attempt([_INTERRUPTED, _FAILED], is_repeatable=False)


def test_interrupted_attempts_do_not_count_unless_there_is_no_other() -> None:
    assert uninterrupted([_FAILED, _INTERRUPTED, _PASSED]) == [Verdict.FAIL, Verdict.PASS]
    assert uninterrupted([_INTERRUPTED]) == [Verdict.ERROR]
    assert uninterrupted([_INTERRUPTED, Attempt(Verdict.FAIL, "kubelet")]) == [Verdict.FAIL]
