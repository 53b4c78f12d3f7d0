"""Serial tests: disruptive tests run after all others, one at a time, and must leave the cluster as they found it.

Without xdist, sorting is enough. With xdist, workers skip them, and the controller runs them when the workers have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

import pytest

from testbed.conformance.selection import Facts, runs_alone
from testbed.errors import Blocked, TestbedError
from testbed.models.requirement_enums import Tier
from testbed.plugin.markers import requirement_of_item
from testbed.vocabulary.cluster.cluster_condition import current_condition, wait_until_restored
from testbed.vocabulary.world import World

_CLUSTER_CHANGED = pytest.StashKey[str]()


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


class SerialTests:
    """The hook of xdist's controller that runs the serial tests. `deferred` returns their IDs."""

    def __init__(self, deferred: Callable[[], list[str]]) -> None:
        self._deferred = deferred

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Run the serial tests after all workers have ended."""
        result = yield
        names = self._deferred()
        if names:
            collected = session.testscollected
            items = session.perform_collect([str(session.config.rootpath / name) for name in names])
            session.testscollected = collected
            _run(session, list(items))
        return result


def cluster_unchanged(config: pytest.Config, world: World, test: str) -> Iterator[None]:
    """Check around a serial test that it leaves the cluster as it found it. Raise Blocked if an earlier one did not."""
    if _CLUSTER_CHANGED in config.stash:
        raise Blocked(f"an earlier test did not restore the cluster\n  {config.stash[_CLUSTER_CHANGED]}")
    before = current_condition(world)
    yield
    try:
        wait_until_restored(world, before)
    except TestbedError as changed:
        config.stash[_CLUSTER_CHANGED] = f"{test}: {changed}"
        raise


def _rank(item: pytest.Item, facts: Facts) -> int:
    requirement = requirement_of_item(item)
    return 2 if is_disruptive(item) else int(requirement is not None and runs_alone(requirement, facts))


def _run(session: pytest.Session, items: list[pytest.Item]) -> None:
    for item, following in zip(items, [*items[1:], None], strict=True):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
