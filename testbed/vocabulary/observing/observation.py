"""Wait for one object by watch, and fail for humans: what was expected, what was seen last, the likely cause. All `should_…` end here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from testbed.errors import ApiError, DriverFailed, NodesUnderPressure, WaitTimeout
from testbed.kube.client import Kube, Object
from testbed.vocabulary import budgets
from testbed.waiting import Budget, NotYet, eventually

T = TypeVar("T")
Meanwhile = Callable[[], object]
_LONGEST_WATCH = 20.0
_BETWEEN_LOOKS = 2.0
_GONE = 410
_TOO_SLOW = "it has too much to do for this machine; this is not the driver's fault"


class NotObserved(DriverFailed):
    """Something that the driver had to bring about did not come in time. Blames the driver."""


class StateUnreachable(Exception):
    """Raised by a check when the state cannot come any more, so that nobody waits for it; its text is what was seen."""


@dataclass(frozen=True)
class Diagnosis:
    """What is probably wrong. `ours` is true when it is not the driver's doing: a missing image, a node that is away.

    `lasting` is true when it keeps later tests from their pods as well: a node without disk.
    """

    cause: str
    by_environment: bool = False
    warnings: tuple[str, ...] = ()
    lasting: bool = False

    @classmethod
    def none(cls) -> Diagnosis:
        """What was seen says all."""
        return cls("")


@dataclass(frozen=True)
class Target:
    """The object that is watched; with a field selector of its own, all that it selects."""

    api_version: str
    kind: str
    namespace: str | None  # None for a kind that has none
    name: str
    selector: str = ""

    @property
    def fields(self) -> str:
        """The field selector."""
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
    """Look at every state of the object until `check` returns; it raises NotYet (go on) or NeverComes (give up).

    Every two seconds `meanwhile` is called, for waits that have to look at something else as well.
    """
    seen = f"there is no {target}"
    for state in _states(kube, target, budget.effective_seconds, meanwhile):
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
    """Look at every state of the object for the whole budget, and at one at least; it may not go, and none may make `check` raise."""
    seen = False
    for state in _states(kube, target, budget.effective_seconds):
        seen = True
        if state is None:
            raise failure(expected, "it was deleted", f"it should last ({budget})", diagnose())
        _demand(check, state, expected, budget, diagnose)
    if not seen:  # a short budget may be over before the first watch has said anything
        there = kube.list(target.api_version, target.kind, target.namespace, fieldSelector=target.fields)
        if not there:
            raise failure(expected, f"there is no {target}", str(budget), diagnose())
        for state in there:
            _demand(check, state, expected, budget, diagnose)


def _demand(
    check: Callable[[Object], object], state: Object, expected: str, budget: Budget, diagnose: Callable[[], Diagnosis]
) -> None:
    try:
        check(state)
    except (NotYet, StateUnreachable) as broken:
        raise failure(expected, str(broken), f"it should last ({budget})", diagnose()) from None


def failure(expected: str, seen: str, waited: str, diagnosis: Diagnosis) -> NotObserved | WaitTimeout:
    """The error of a wait that was in vain. Whose fault it is follows from the diagnosis."""
    lines = [seen, *(f"    {line}" for line in diagnosis.warnings)]
    if diagnosis.by_environment:
        kind = NodesUnderPressure if diagnosis.lasting else WaitTimeout
        return kind(expected, waited, "\n".join(lines), hint=f"{diagnosis.cause}; this is not the driver's fault")
    cause = [f"  likely cause: {diagnosis.cause}"] if diagnosis.cause else []
    return NotObserved(
        "\n".join([f"expected {expected}", *cause, f"  last seen: {lines[0]}", *lines[1:], f"  waited: {waited}"])
    )


def _states(kube: Kube, target: Target, seconds: float, meanwhile: Meanwhile | None = None) -> Iterator[Object | None]:
    """The object as it is and as it changes, None where it was deleted, until the time is over. A watch that ends is taken up again."""
    deadline = time.monotonic() + seconds
    longest = _BETWEEN_LOOKS if meanwhile else _LONGEST_WATCH
    while (left := deadline - time.monotonic()) > 0:
        try:
            yield from _watched(kube, target, min(left, longest))
        except ApiError as refused:
            # It may have forgotten where the watch began; the next one begins anew.
            if refused.status != _GONE:
                deadline += _waited_for_an_answer(kube, target, refused)
        if meanwhile:
            meanwhile()


def _watched(kube: Kube, target: Target, seconds: float) -> Iterator[Object | None]:
    for event in kube.watch(
        target.api_version, target.kind, target.namespace, seconds=seconds, fieldSelector=target.fields
    ):
        if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
            yield None if event["type"] == "DELETED" else event["object"]


def _waited_for_an_answer(kube: Kube, target: Target, refused: ApiError) -> float:
    """A server that has too much to do is waited for; how long that took is nobody's delay. Any other refusal is raised."""
    began = time.monotonic()

    def ask() -> None:
        try:
            kube.list(target.api_version, target.kind, target.namespace, fieldSelector=target.fields)
        except ApiError as again:
            if not again.overloaded:
                raise
            raise NotYet(str(again)) from again

    if not refused.overloaded:
        raise refused
    eventually(ask, "the API server to answer", budgets.API_SERVER_ANSWERED, hint=_TOO_SLOW)
    return time.monotonic() - began
