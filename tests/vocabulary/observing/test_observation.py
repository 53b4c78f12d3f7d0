from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.errors import ApiError, WaitTimeout
from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.observing.observation import Diagnosis, NotObserved, StateUnreachable, Target, hold, observe
from testbed.waiting import Budget, NotYet, set_patience

TARGET = Target("v1", "Pod", "here", "p")
BUDGET = Budget("pod runs", 30, "test")


class Watching:
    """A fake Kube with given watches: each is a list of phases or an error."""

    def __init__(self, *watches: list[str] | ApiError, there: tuple[str, ...] = ()) -> None:
        self.watches, self.there = list(watches), there

    def list(self, *_: Any, **__: Any) -> list[Object]:
        if self.watches and isinstance(self.watches[0], ApiError):
            raise self.watches.pop(0)  # type: ignore[misc]  # checked one line above
        return [{"phase": phase} for phase in self.there]

    def watch(self, *_: Any, seconds: float, fieldSelector: str) -> Iterator[Object]:  # noqa: N803 - the API's name
        assert seconds > 0
        assert fieldSelector == "metadata.name=p"
        now = self.watches.pop(0) if self.watches else []
        if isinstance(now, ApiError):
            raise now
        for phase in now:
            kind = "DELETED" if phase == "gone" else "MODIFIED"
            yield {"type": kind, "object": {"phase": phase}}


def _observe(*watches: list[str] | ApiError, by_environment: bool = False, there: tuple[str, ...] = ()) -> str:
    def check(state: Object) -> str:
        if state["phase"] == "broken":
            raise StateUnreachable("it is broken")
        if state["phase"] != "good":
            raise NotYet(f"it is {state['phase']}")
        return "came"

    kube: Any = Watching(*watches, there=there)
    return observe(
        kube, TARGET, check, "p to be good", BUDGET, lambda: Diagnosis("a reason", by_environment, ("W: x",))
    )


def test_it_returns_as_soon_as_the_state_is_seen() -> None:
    assert _observe(["bad", "good", "broken"]) == "came"


def test_a_watch_that_ends_is_started_again() -> None:
    assert _observe([], ["bad"], ["good"]) == "came"


def test_an_expired_watch_is_started_again() -> None:
    assert _observe(["bad"], ApiError("WATCH", 410, "Expired", "too old"), ["good"]) == "came"


def test_an_overloaded_api_server_is_waited_for() -> None:
    set_patience(1.0)  # on a busy machine, a thousandth of the budget may be too short
    busy = ApiError("WATCH", 500, "InternalError", "context deadline exceeded")
    assert _observe(["bad"], busy, busy, busy, ["good"]) == "came"


def test_an_api_server_that_stays_overloaded_does_not_blame_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = ApiError("WATCH", 503, "ServiceUnavailable", "busy")
    monkeypatch.setattr(budgets, "API_SERVER_ANSWERED", Budget("API server answers", 0.01, "test"))
    with pytest.raises(WaitTimeout, match="not the driver's fault"):
        _observe(*[busy] * 1000)


def test_an_unreachable_api_server_is_not_waited_for() -> None:
    with pytest.raises(ApiError, match="refused"):
        _observe(["bad"], ApiError("WATCH", 0, "", "refused"))


def test_a_wait_for_an_unreachable_state_ends_at_once() -> None:
    with pytest.raises(NotObserved, match="given up before the budget") as raised:
        _observe(["bad", "broken"])
    assert str(raised.value).splitlines()[:4] == [
        "expected p to be good",
        "  likely cause: a reason",
        "  last seen: it is broken",
        "    W: x",
    ]


@pytest.mark.usefixtures("_impatient")
def test_a_wait_that_runs_out_of_time_reports_what_was_last_seen() -> None:
    with pytest.raises(
        NotObserved, match=r"last seen: it was deleted; before that: it is bad\n    W: x\n  waited: pod runs: 0\.03 s"
    ):
        _observe(["good"][:0], ["bad", "gone"])


@pytest.mark.usefixtures("_impatient")
def test_a_wait_for_a_missing_object_reports_that_it_is_missing() -> None:
    with pytest.raises(NotObserved, match="there is no pod p"):
        _observe()


@pytest.mark.usefixtures("_impatient")
def test_a_state_that_no_watch_showed_is_read_before_the_wait_fails() -> None:
    assert _observe([], there=("good",)) == "came"
    assert _observe(["bad"], there=("good",)) == "came"
    with pytest.raises(NotObserved, match="last seen: it is worse"):
        _observe(["bad"], there=("worse",))


def _hold(*watches: list[str], there: tuple[str, ...] = ()) -> None:
    def check(state: Object) -> None:
        if state["phase"] != "good":
            raise NotYet(f"it is {state['phase']}")

    kube: Any = Watching(*watches, there=there)
    hold(kube, TARGET, check, "p to stay good", Budget("p stays good", 0.03, "test"), Diagnosis.none)


@pytest.mark.usefixtures("_impatient")
def test_patience_does_not_shorten_the_observation_of_a_state_that_must_last() -> None:
    began = time.monotonic()
    kube: Any = Watching(there=("good",))
    hold(kube, TARGET, lambda _: None, "p to stay good", Budget("p stays good", 0.3, "test"), Diagnosis.none)
    assert time.monotonic() - began >= 0.3


@pytest.mark.usefixtures("_impatient")
def test_a_state_that_lasts() -> None:
    _hold(["good"], [], ["good"], there=("good",))


@pytest.mark.usefixtures("_impatient")
def test_a_deleted_object_does_not_hold() -> None:
    with pytest.raises(NotObserved, match="last seen: it was deleted"):
        _hold(["good", "gone"])


@pytest.mark.usefixtures("_impatient")
def test_a_state_that_does_not_last_is_reported_with_the_new_state() -> None:
    with pytest.raises(
        NotObserved, match=r"expected p to stay good\n  last seen: it is bad\n  waited: less than the budget"
    ):
        _hold(["good"], ["bad"])


@pytest.mark.usefixtures("_impatient")
def test_a_missing_object_does_not_hold() -> None:
    with pytest.raises(NotObserved, match="there is no pod p"):
        _hold([])


@pytest.mark.usefixtures("_impatient")
def test_the_state_is_read_at_least_once_without_watch_events() -> None:
    _hold([], there=("good",))
    with pytest.raises(NotObserved, match="last seen: it is bad"):
        _hold([], there=("bad",))


@pytest.mark.usefixtures("_impatient")
def test_a_change_that_the_watch_lost_is_read_at_the_end() -> None:
    with pytest.raises(NotObserved, match="last seen: it is bad"):
        _hold(["good"], there=("bad",))
    with pytest.raises(NotObserved, match="there is no pod p"):
        _hold(["good"])


@pytest.mark.usefixtures("_impatient")
def test_meanwhile_is_called_between_watches() -> None:
    def check(state: Object) -> str:
        if state["phase"] != "good":
            raise NotYet("bad")
        return "came"

    kube: Any = Watching(["bad"], ["bad"], ["good"])
    calls: list[int] = []
    assert observe(kube, TARGET, check, "p", BUDGET, Diagnosis.none, lambda: calls.append(1)) == "came"
    assert len(calls) == 2
