"""Wait for the state of one object with a watch, and build the error of a wait that failed. All `should_…` verbs use it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from testbed.errors import ApiError, DriverFailed, NodesUnderPressure, WaitTimeout
from testbed.kube.client import Kube, Object
from testbed.vocabulary import budgets
from testbed.waiting import Budget, NotYet, eventually, unshortened

T = TypeVar("T")
Meanwhile = Callable[[], object]
_LONGEST_WATCH = 20.0
_BETWEEN_CALLS = 2.0
_GONE = 410
_OVERLOADED = "the API server is overloaded; this is not the driver's fault"


class NotObserved(DriverFailed):
    """A state that the driver had to bring about was not observed in time. Blames the driver.

    In a requirement about the cluster, it blames the cluster unless it is `by_driver`.
    """

    def __init__(self, what: str, *, by_driver: bool = False) -> None:
        super().__init__(what)
        self.by_driver = by_driver


class StateUnreachable(Exception):
    """Raised by a check when the expected state can no longer come, so that the wait ends; its text is what was seen."""


@dataclass(frozen=True)
class Diagnosis:
    """The likely cause of a failed wait.

    `by_environment` is True if the driver did not cause it: a missing image, a node that is not Ready. `by_driver` is True if only
    the driver can have caused it: it refused to prepare a claim. `lasting` is True if later tests are affected too: a node that is
    short of disk. `warnings` are the newest warning events.
    """

    cause: str
    by_environment: bool = False
    warnings: tuple[str, ...] = ()
    lasting: bool = False
    by_driver: bool = False

    @classmethod
    def none(cls) -> Diagnosis:
        """Return a diagnosis without a cause."""
        return cls("")


@dataclass(frozen=True)
class Target:
    """The object that is watched; with a field selector, all objects that it selects."""

    api_version: str
    kind: str
    namespace: str | None  # None for cluster-wide kinds
    name: str
    selector: str = ""

    @property
    def fields(self) -> str:
        """Return the field selector."""
        return self.selector or f"metadata.name={self.name}"

    def __str__(self) -> str:
        return f"{self.kind.lower()} {self.name}"


def observe(
    kube: Kube,
    target: Target,
    check: Callable[[Object], T],
    expected: str,
    budget: Budget,
    diagnose: Callable[[], Diagnosis],
    meanwhile: Meanwhile | None = None,
) -> T:
    """Watch the object until `check` returns for one of its states, and return the result. Before failing, read it once more.

    `check` raises NotYet to continue and StateUnreachable to give up. `meanwhile` is called every two seconds. If the wait
    fails, the error contains the diagnosis.
    """
    seen = f"there is no {target}"
    states = _states(kube, target, budget.effective_seconds, meanwhile)
    for state in itertools.chain(states, _current(kube, target)):
        if state is None:
            seen = f"it was deleted; before that: {seen}"
            continue
        try:
            return check(state)
        except NotYet as answer:
            seen = str(answer)
        except StateUnreachable as answer:
            raise failure(expected, str(answer), f"given up before the budget ({budget})", diagnose()) from None
    raise failure(expected, seen, str(budget), diagnose())


def hold(
    kube: Kube,
    target: Target,
    check: Callable[[Object], object],
    expected: str,
    budget: Budget,
    diagnose: Callable[[], Diagnosis],
) -> None:
    """Watch the object for the whole budget, and require that it exists and that `check` accepts each of its states, the last one too.

    Patience never shortens the budget: a change that comes later would not be seen.
    """
    budget = unshortened(budget)
    for state in _states(kube, target, budget.effective_seconds):
        if state is None:
            raise failure(expected, "it was deleted", f"less than the budget ({budget})", diagnose())
        _require(check, state, expected, budget, diagnose)
    found = list(_current(kube, target))
    if not found:
        raise failure(expected, f"there is no {target}", str(budget), diagnose())
    for state in found:
        _require(check, state, expected, budget, diagnose)


def _require(
    check: Callable[[Object], object], state: Object, expected: str, budget: Budget, diagnose: Callable[[], Diagnosis]
) -> None:
    try:
        check(state)
    except (NotYet, StateUnreachable) as broken:
        raise failure(expected, str(broken), f"less than the budget ({budget})", diagnose()) from None


def failure(expected: str, seen: str, waited: str, diagnosis: Diagnosis) -> NotObserved | WaitTimeout:
    """Return the error of a failed wait. The diagnosis decides whether it blames the driver."""
    lines = [seen, *(f"    {line}" for line in diagnosis.warnings)]
    if diagnosis.by_environment:
        kind = NodesUnderPressure if diagnosis.lasting else WaitTimeout
        return kind(expected, waited, "\n".join(lines), cause=f"{diagnosis.cause}; the driver is not blamed for it")
    cause = [f"  likely cause: {diagnosis.cause}"] if diagnosis.cause else []
    text = [f"expected {expected}", *cause, f"  last seen: {lines[0]}", *lines[1:], f"  waited: {waited}"]
    return NotObserved("\n".join(text), by_driver=diagnosis.by_driver)


def _states(kube: Kube, target: Target, seconds: float, meanwhile: Meanwhile | None = None) -> Iterator[Object | None]:
    """Yield each state of the object until the time is over, and None for its deletion. A watch that ends is started again."""
    deadline = time.monotonic() + seconds
    longest = _BETWEEN_CALLS if meanwhile else _LONGEST_WATCH
    while (left := deadline - time.monotonic()) > 0:
        try:
            yield from _watched(kube, target, min(left, longest))
        except ApiError as refused:
            # After "410 Gone" the resource version of the watch has expired; the next watch starts from the current state.
            if refused.status != _GONE:
                deadline += _wait_for_api_server(kube, target, refused)
        if meanwhile:
            meanwhile()


def _current(kube: Kube, target: Target) -> Iterator[Object]:
    """Yield the object as it is when this is read: a watch can lose events, or end before the first one."""
    yield from kube.list(target.api_version, target.kind, target.namespace, fieldSelector=target.fields)


def _watched(kube: Kube, target: Target, seconds: float) -> Iterator[Object | None]:
    for event in kube.watch(
        target.api_version, target.kind, target.namespace, seconds=seconds, fieldSelector=target.fields
    ):
        if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
            yield None if event["type"] == "DELETED" else event["object"]


def _wait_for_api_server(kube: Kube, target: Target, refused: ApiError) -> float:
    """Wait until an overloaded API server answers again, and return how many seconds that took. Raise other errors."""
    began = time.monotonic()

    def ask() -> None:
        try:
            list(_current(kube, target))
        except ApiError as again:
            if not again.overloaded:
                raise
            raise NotYet(str(again)) from again

    if not refused.overloaded:
        raise refused
    eventually(ask, "the API server to answer", budgets.API_SERVER_ANSWERED, hint=_OVERLOADED)
    return time.monotonic() - began
