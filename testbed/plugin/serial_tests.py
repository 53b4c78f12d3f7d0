"""Tests that run alone: repetitions of failed tests, then serial tests, which are disruptive and must restore the cluster.

They run after all others. With xdist, workers skip serial tests, and the controller runs them when the workers have ended.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Protocol

import pytest

from testbed.conformance.selection import Facts, runs_alone
from testbed.conformance.verdicts import INTERRUPTIONS, REPETITIONS
from testbed.errors import Blocked, TestbedError
from testbed.models.requirement_enums import Tier
from testbed.plugin.markers import requirement_of_item
from testbed.vocabulary.cluster.cluster_condition import ClusterCondition, current_condition, wait_until_restored
from testbed.vocabulary.cluster.restoration import check_restored, restore
from testbed.vocabulary.driver.returned_devices import wait_for_returned_devices
from testbed.vocabulary.world import World

REPETITION = pytest.StashKey[int]()  # the number of the repetition that a test is run for


@dataclass(frozen=True)
class BrokenCluster:
    """What a serial test did not restore: its name, what was seen, and the condition of the cluster before it.

    `is_hopeless` is True if it could not be repaired once; later tests only look again.
    """

    test: str
    seen: str
    before: ClusterCondition
    is_hopeless: bool = False


_CLUSTER_CHANGED = pytest.StashKey[BrokenCluster]()


def in_run_order(items: list[pytest.Item], facts: Facts) -> list[pytest.Item]:
    """Return tests that run side by side, then tests that need all devices, then disruptive tests."""
    return sorted(items, key=lambda item: _rank(item, facts))


def is_disruptive(item: pytest.Item) -> bool:
    """Return True if a test is a serial test."""
    requirement = requirement_of_item(item)
    return requirement is not None and requirement.tier is Tier.DISRUPTIVE


class DeferredToController:
    """The hook of xdist's workers that leaves serial tests to the controller."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Skip a serial test silently. True tells pytest that the test has been handled."""
        return True if is_disruptive(item) else None


class Repeated(Protocol):
    """Knows which tests failed and are repeated, and which serial tests can be judged."""

    def disruptive(self) -> list[str]:
        """Return the IDs of the serial tests that can be judged."""

    def begin_repetitions(self) -> list[str]:
        """Return the IDs of the tests that failed and have to be repeated. No other failure is repeated from now on."""

    def is_open(self, test: str) -> bool:
        """Return True if another repetition is needed to judge a test."""


class SerialTests:
    """The hook of the controller, or of the only process, that runs tests alone: repetitions of failed tests, then serial tests."""

    def __init__(self, tests: Repeated, *, with_workers: bool) -> None:
        self._tests, self._with_workers = tests, with_workers

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Run them when all other tests, and with xdist all workers, have ended."""
        every = [] if self._with_workers else session.items
        if not self._with_workers:
            session.items = [item for item in every if not is_disruptive(item)]
        result = yield
        repeated = self._tests.begin_repetitions()
        if self._with_workers:
            every = _collect(session, [*repeated, *self._tests.disruptive()])
        session.items = every
        for item in every:
            if item.nodeid in repeated:
                self._repeat(session, item, None)
        disruptive = [item for item in every if is_disruptive(item)]
        for item, following in zip_longest(disruptive, disruptive[1:]):
            _run(session, item, following)
            self._repeat(session, item, following)
        return result

    def _repeat(self, session: pytest.Session, item: pytest.Item, following: pytest.Item | None) -> None:
        for number in range(1, REPETITIONS + INTERRUPTIONS + 1):
            if self._tests.is_open(item.nodeid):
                item.stash[REPETITION] = number
                _run(session, item, following)


def _collect(session: pytest.Session, names: list[str]) -> list[pytest.Item]:
    if not names:
        return []
    collected = session.testscollected
    items = session.perform_collect([str(session.config.rootpath / name) for name in names])
    session.testscollected = collected
    return list(items)


def cluster_unchanged(config: pytest.Config, world: World, test: str) -> Iterator[None]:
    """Check around a serial test that it leaves the cluster as it found it. Repair first what an earlier one broke, or raise Blocked."""
    broken = config.stash.get(_CLUSTER_CHANGED, None)
    if broken:
        _repair(config, world, broken)
    wait_for_returned_devices(world)
    before = current_condition(world)
    yield
    try:
        wait_until_restored(world, before)
    except TestbedError as changed:
        config.stash[_CLUSTER_CHANGED] = BrokenCluster(test, str(changed), before)
        raise


def _repair(config: pytest.Config, world: World, broken: BrokenCluster) -> None:
    try:
        if broken.is_hopeless:
            check_restored(world, broken.before)
        else:
            restore(world, broken.before)
    except TestbedError as left:
        config.stash[_CLUSTER_CHANGED] = replace(broken, is_hopeless=True)
        raise Blocked(
            f"an earlier test did not restore the cluster, and it could not be repaired: {left}\n  {broken.test}: {broken.seen}"
        ) from left
    del config.stash[_CLUSTER_CHANGED]


def _rank(item: pytest.Item, facts: Facts) -> int:
    requirement = requirement_of_item(item)
    return 2 if is_disruptive(item) else int(requirement is not None and runs_alone(requirement, facts))


def _run(session: pytest.Session, item: pytest.Item, following: pytest.Item | None) -> None:
    session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
