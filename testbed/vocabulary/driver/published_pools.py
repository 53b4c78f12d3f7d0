"""The pools and slices that the driver under test publishes, and the waits for them. `driver.Driver` adds everything else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar

from testbed.drivers.published.slices import Pool, pools
from testbed.errors import DriverFailed
from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.driver import slice_checks
from testbed.vocabulary.driver.pool_changes import PoolWatch
from testbed.vocabulary.observing.observation import Diagnosis
from testbed.vocabulary.observing.queries import eventually_or_explain
from testbed.vocabulary.world import RESOURCE, World
from testbed.waiting import Budget, NotYet, eventually_true, unshortened

T = TypeVar("T")
_NOT_DELETED = Diagnosis(
    "a kubelet deletes the slices of a driver that it can no longer reach; does a process of the driver still serve its socket?"
)
NOT_REPUBLISHED = Diagnosis(
    "each starting kubelet deletes all slices of its node; the driver has to publish them again"
)


@dataclass(frozen=True)
class PublishedPools:
    """The pools and slices of the driver under test."""

    world: World

    @property
    def name(self) -> str:
        """Return the driver name, as in ResourceSlices."""
        return self.world.driver_file.driver

    @property
    def pools(self) -> tuple[Pool, ...]:
        """Return the pools in their newest generations, sorted by name."""
        return tuple(pools(self.world.slices(), self.name))

    @property
    def incomplete_pools(self) -> tuple[Pool, ...]:
        """Return the pools that are still incomplete after the budget POOL."""
        return _lasting(lambda: tuple(pool for pool in self.pools if not pool.complete))

    @property
    def inconsistent_pools(self) -> tuple[str, ...]:
        """Describe the pools whose slices still contradict each other after the budget POOL."""
        return _lasting(lambda: slice_checks.contradictions(self.world.slices()))

    @property
    def ownerless_slices(self) -> tuple[str, ...]:
        """Describe the slices of nodes that are not owned by their node, and would outlive it."""
        slices = self.world.slices()  # before the nodes, so that the nodes of all slices are known
        nodes = {each["metadata"]["name"]: each["metadata"]["uid"] for each in self.world.kube.list("v1", "Node")}
        return slice_checks.ownerless(slices, nodes)

    def slices_on(self, node: str) -> frozenset[str]:
        """Return the UIDs of the slices of a node; DriverFailed if there is none. A slice that is published again has a new UID."""
        found = self._slices_on(node)
        if not found:
            raise DriverFailed(f"the driver publishes no ResourceSlice for node {node}")
        return found

    def watch_pools(self, node: str) -> PoolWatch:
        """Start to record the states of the pools with devices on a node or of the network; DriverFailed if there is none."""
        version, slices = self.world.kube.resource_version(RESOURCE, "ResourceSlice"), tuple(self.world.slices())
        reached = [pool for pool in pools(slices, self.name) if node in pool.nodes or not pool.nodes]
        if not any(pool.complete and pool.devices for pool in reached):
            raise DriverFailed(f"the driver publishes no complete pool with devices for node {node}")
        return PoolWatch(self.world, tuple(pool.name for pool in reached), slices, version)

    def should_lose_slices(self, slices: frozenset[str], node: str) -> Self:
        """Wait until these slices of a node are deleted."""

        def gone() -> None:
            if left := slices & self._slices_on(node):
                raise NotYet(f"{len(left)} of {len(slices)} slices still exist")

        expected = f"the slices of {self.name} for {node} to be deleted"
        eventually_or_explain(self.world, gone, expected, budgets.SLICES_DELETED, _NOT_DELETED, longest_pause=0.5)
        return self

    def should_replace_slices(self, slices: frozenset[str], node: str) -> Self:
        """Wait until these slices of a node are replaced by others, and a pool there is complete."""

        def published() -> None:
            left = slices & self._slices_on(node)
            complete = [pool for pool in self.pools if pool.complete and node in pool.nodes]
            if left or not complete:
                raise NotYet(f"{len(left)} old slices still exist, and {'a' if complete else 'no'} pool is complete")

        expected = f"{self.name} to publish its devices on {node} again"
        eventually_or_explain(self.world, published, expected, budgets.REPUBLISHED, NOT_REPUBLISHED)
        return self

    def pool_content(self, node: str) -> slice_checks.PoolContent:
        """Return generation and devices of each pool of a node, in the order in which they are published."""
        return slice_checks.pool_content(pool for pool in self.pools if node in pool.nodes)

    def should_keep_pools(self, before: slice_checks.PoolContent, node: str) -> None:
        """Require for the budget STAYS that the pools of a node have the generation, and the devices in the order, that they had before."""
        if found := found_within(
            lambda: slice_checks.changes(before, self.pool_content(node)), unshortened(budgets.STAYS)
        ):
            raise DriverFailed(
                f"expected {self.name} to publish nothing again on {node}, because its hardware is the same\n"
                f"  last seen: {'; '.join(found)}"
            )

    def _slices_on(self, node: str) -> frozenset[str]:
        return frozenset(str(each["metadata"]["uid"]) for each in self.world.slices() if _node(each) == node)


def _lasting(find: Callable[[], tuple[T, ...]]) -> tuple[T, ...]:
    """Return what is still wrong after the budget POOL, in which a driver can finish an update of its pools."""
    wrong: tuple[T, ...] = ()

    def is_correct() -> bool:
        nonlocal wrong
        wrong = find()
        return not wrong

    eventually_true(is_correct, budgets.POOL)
    return wrong


def found_within(find: Callable[[], list[T]], budget: Budget) -> list[T]:
    """Return what is found first during the budget, or []."""
    found: list[T] = []

    def has_found() -> bool:
        found.extend(find())
        return bool(found)

    eventually_true(has_found, budget)
    return found


def _node(slice_: Object) -> str:
    return str(slice_["spec"].get("nodeName", ""))
