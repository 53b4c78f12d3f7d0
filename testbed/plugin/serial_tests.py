"""The serial lane: disruptive tests come after all others, one at a time, in one process, each on a cluster as it was before.

Without xdist their place in the order is enough. With it, workers pass them over, and the controller runs them when the workers are done.
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

_SPOILT = pytest.StashKey[str]()


def in_run_order(items: list[pytest.Item], facts: Facts) -> list[pytest.Item]:
    """Tests that need all devices for themselves after those that run side by side, disruptive ones last."""
    return sorted(items, key=lambda item: _place(item, facts))


def is_disruptive(item: pytest.Item) -> bool:
    """Whether a test belongs to the lane."""
    requirement = requirement_of_item(item)
    return requirement is not None and requirement.tier is Tier.DISRUPTIVE


class DeferredToController:
    """The hooks of xdist's workers: a disruptive test is left to the controller, without a word."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """True says that somebody has taken care of it."""
        return True if is_disruptive(item) else None


class SerialTests:
    """The hooks of xdist's controller. `waiting` gives the ids of the disruptive tests."""

    def __init__(self, waiting: Callable[[], list[str]]) -> None:
        self._waiting = waiting

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """When all workers have ended, run what they passed over."""
        result = yield
        names = self._waiting()
        if names:
            collected = session.testscollected
            items = session.perform_collect([str(session.config.rootpath / name) for name in names])
            session.testscollected = collected
            _run(session, list(items))
        return result


def cluster_unchanged(config: pytest.Config, world: World, test: str) -> Iterator[None]:
    """Around a disruptive test: the cluster is as the test before left it, and as this one found it."""
    if _SPOILT in config.stash:
        raise Blocked(
            f"a test before this one left the cluster in another state than it had found\n  {config.stash[_SPOILT]}"
        )
    before = current_condition(world)
    yield
    try:
        wait_until_restored(world, before)
    except TestbedError as worse:
        config.stash[_SPOILT] = f"{test}: {worse}"
        raise


def _place(item: pytest.Item, facts: Facts) -> int:
    requirement = requirement_of_item(item)
    return 2 if is_disruptive(item) else int(requirement is not None and runs_alone(requirement, facts))


def _run(session: pytest.Session, items: list[pytest.Item]) -> None:
    for item, following in zip(items, [*items[1:], None], strict=True):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
