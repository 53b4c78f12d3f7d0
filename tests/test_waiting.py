"""Waiting, with a fake clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from testbed import waiting
from testbed.errors import TestbedError, WaitTimeout
from testbed.waiting import (
    Budget,
    NotYet,
    consistently,
    eventually,
    eventually_true,
    holds_for,
    set_patience,
    unshortened,
)

BUDGET = Budget("patience of a test", 10, "it is a test")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(waiting, "time", clock)
    monkeypatch.setattr(waiting, "_patience", 1.0)
    return clock


def answers_after(calls: int, answer: str = "there") -> list[str]:
    return [f"not there {number}" for number in range(calls)] + [answer]


def check_of(answers: list[str]) -> Callable[[], str]:
    def check() -> str:
        answer = answers.pop(0)
        if answer.startswith("not"):
            raise NotYet(answer)
        return answer

    return check


def test_a_condition_that_is_met_already_is_not_waited_for(clock: Clock) -> None:
    assert eventually(check_of(answers_after(0)), "it", BUDGET) == "there"
    assert clock.pauses == []


def test_pauses_grow_up_to_the_longest_one(clock: Clock) -> None:
    eventually(check_of(answers_after(12)), "it", BUDGET)

    assert clock.pauses[0] == 0.02
    assert clock.pauses == sorted(clock.pauses)
    assert clock.pauses[-1] == 0.5


def test_the_longest_pause_can_be_shorter(clock: Clock) -> None:
    eventually(check_of(answers_after(12)), "it", BUDGET, longest_pause=0.1)

    assert max(clock.pauses) == 0.1


def test_patience_never_shortens_a_budget_below_its_minimum() -> None:
    budget = Budget("sync", 7, "syncs come every 5 s", minimum=6)
    stretched = []
    for patience in (0.1, 1, 2):
        set_patience(patience)
        stretched.append(budget.effective_seconds)
    set_patience(1)
    assert stretched == [6, 7, 14]


def test_after_the_budget_the_error_reports_the_last_observation(clock: Clock) -> None:
    with pytest.raises(WaitTimeout) as late:
        eventually(check_of(answers_after(1000)), "it to come", BUDGET, hint="look there")

    assert clock.now == pytest.approx(10)
    assert "it to come (patience of a test: 10 s)" in str(late.value)
    assert late.value.last_seen == f"not there {len(clock.pauses)}"
    assert late.value.hint == "look there"
    assert isinstance(late.value.__cause__, NotYet)


def test_the_last_check_is_at_the_end_of_the_budget(clock: Clock) -> None:
    observations: list[float] = []

    def check() -> None:
        observations.append(clock.now)
        raise NotYet

    with pytest.raises(WaitTimeout, match="nothing yet"):
        eventually(check, "it", BUDGET)

    assert observations[-1] == pytest.approx(10)


def test_other_errors_are_raised_at_once(clock: Clock) -> None:
    def check() -> None:
        raise KeyError("broken")

    with pytest.raises(KeyError):
        eventually(check, "it", BUDGET)
    assert clock.pauses == []


def test_the_patience_factor_scales_every_budget(clock: Clock) -> None:
    set_patience(3)

    with pytest.raises(WaitTimeout, match="30 s"):
        eventually(check_of(answers_after(1000)), "it", BUDGET)
    assert clock.now == pytest.approx(30)


def test_eventually_true_returns_true_or_false(clock: Clock) -> None:
    answers = [False, False, True]

    assert eventually_true(lambda: answers.pop(0), BUDGET)
    assert not eventually_true(lambda: False, BUDGET)


def test_consistently_checks_until_the_end_of_the_budget(clock: Clock) -> None:
    observations: list[float] = []

    def check() -> str:
        observations.append(clock.now)
        return "fine"

    assert consistently(check, "it to hold", BUDGET) == "fine"
    assert observations[-1] == pytest.approx(10)
    assert len(observations) > 40


def test_consistently_reports_the_observation_that_broke_the_claim(clock: Clock) -> None:
    answers = ["fine", "fine", "not any more"]

    with pytest.raises(TestbedError, match=r"expected it to hold for .*10 s, but saw: not any more"):
        consistently(check_of(answers), "it to hold", BUDGET)


def test_holds_for_waits_until_the_condition_held_without_a_break(clock: Clock) -> None:
    check = holds_for(check_of(["there", "there", "not any more", *["there"] * 20]), 2)

    assert eventually(check, "it", BUDGET) == "there"
    broken = sum(clock.pauses[:2])
    assert clock.now - broken >= 2


def test_holds_for_reports_a_condition_that_did_not_hold_long_enough(clock: Clock) -> None:
    with pytest.raises(WaitTimeout, match="met, but not for 11 s yet; before that: not there"):
        eventually(holds_for(check_of(["not there", *["there"] * 99]), 11), "it", BUDGET)


@pytest.mark.parametrize(("patience", "seconds"), [(0.1, 10), (1, 10), (3, 30)])
def test_patience_lengthens_and_never_shortens_the_observation_that_something_does_not_happen(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, patience: float, seconds: float
) -> None:
    monkeypatch.setattr(waiting, "_patience", patience)
    consistently(lambda: None, "nothing", BUDGET)
    assert clock.now == pytest.approx(seconds)
    assert unshortened(BUDGET).effective_seconds == seconds
