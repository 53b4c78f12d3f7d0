"""Decide after a failed test whether a component of the cluster failed meanwhile, and repair it. The controller calls it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.bringup import Testbed
from testbed.drivers.ready import expected_nodes, wait_ready
from testbed.errors import TestbedError
from testbed.images.basics import WORKLOAD
from testbed.models.driver_file import DriverFile
from testbed.plugin.canaries import repair
from testbed.plugin.canaries.findings import API_SERVER, FailedComponent, failed_components
from testbed.plugin.canaries.health import dead_components, observe
from testbed.plugin.canaries.pods import Canaries
from testbed.providers.base import Capability
from testbed.waiting import Budget, NotYet, consistently

_MOST_NODES = 3
_LONGEST_CONTROL = 60.0
_ROUNDS = 3  # of repairs; from the second one on, nodes are rebooted


@dataclass(frozen=True)
class FailedTest:
    """A test that failed: when it began and ended, the nodes of its pods, its namespaces, and the component that interrupted it before.

    `judges_cluster` is True if its requirement is about the cluster. What Kubernetes does with claims is then what is judged.
    `lost_api_server` is True if the test got no answer from the API server, which may answer again by now.
    """

    began: float
    ended: float
    nodes: Sequence[str]
    namespaces: Sequence[str]
    evidence: Path
    interrupted_by: str = ""
    judges_cluster: bool = False
    lost_api_server: bool = False


@dataclass(frozen=True)
class Interruption:
    """A component that failed while a test ran. `by_driver` is True if it fails in this test only."""

    component: str
    text: str
    is_repaired: bool
    by_driver: bool = False


class Surroundings:
    """The cluster around the driver under test. It remembers until when a component was broken, because tests run side by side."""

    def __init__(self, testbed: Callable[[], Testbed], driver_file: DriverFile, process: str) -> None:
        self._testbed, self._driver_file, self._process = testbed, driver_file, process
        self._worked_at = 0.0
        self._broken: tuple[str, float] = ("", 0.0)  # the last component that failed, and when it was repaired

    def examine(self, test: FailedTest) -> Interruption | None:
        """Return which component failed while the test ran, repaired if possible; None if the cluster works without the driver."""
        try:
            testbed = self._testbed()
        except TestbedError as lost:
            return Interruption("testbed", f"the testbed cannot be reached: {lost}", is_repaired=False)
        if Capability.MAKE_OBJECTS not in testbed.cluster.capabilities:
            return None
        component, repaired_at = self._broken
        if test.began < repaired_at:
            repair.clean_up(testbed.kube, test.namespaces)
            return Interruption(component, f"{component} failed during this test and was repaired", is_repaired=True)
        found = self._failed_since(testbed, test)
        return self._interruption(testbed, test, found) if found else self._lost_api_server(testbed, test)

    def _failed_since(self, testbed: Testbed, test: FailedTest) -> Sequence[FailedComponent]:
        """Return what has failed since the test began; nothing if everything was seen to work after its end."""
        if test.ended < self._worked_at:
            return ()
        try:
            return self._look(testbed, test)
        except TestbedError:  # nothing is known about the cluster, so the verdict of the test stays
            return ()

    def _lost_api_server(self, testbed: Testbed, test: FailedTest) -> Interruption | None:
        if not test.lost_api_server:
            return None
        repair.clean_up(testbed.kube, test.namespaces)
        return Interruption(
            API_SERVER, f"{API_SERVER} did not answer during this test, and answers again", is_repaired=True
        )

    def _interruption(self, testbed: Testbed, test: FailedTest, found: Sequence[FailedComponent]) -> Interruption:
        repair.keep_logs(testbed, found, test.evidence / "components")
        names = " and ".join(map(str, found))
        text = f"{names} failed during this test\n  last seen: {'; '.join(dict.fromkeys(each.seen for each in found))}"
        problem = self._repair(testbed, found, test)
        if problem:
            return Interruption(names, f"{text}\n  it could not be repaired: {problem}", is_repaired=False)
        repair.clean_up(testbed.kube, test.namespaces)
        self._broken = (names, time.time())
        if test.interrupted_by and self._fails_only_with_test(testbed, test):
            seconds = _control_seconds(test)
            text += f"\n  it failed in this test before ({test.interrupted_by}), and not in {seconds:.0f} s without the test"
            return Interruption(names, text, is_repaired=True, by_driver=True)
        return Interruption(names, f"{text}\n  repaired: restarted, and canary pods run again", is_repaired=True)

    def _look(self, testbed: Testbed, test: FailedTest) -> list[FailedComponent]:
        began = time.time()
        image = testbed.config.images.workload or WORKLOAD.reference
        canaries = Canaries(testbed.kube, testbed.owner, image, self._process)
        with_claims = Capability.CHANGE_DRIVER in testbed.cluster.capabilities and not test.judges_cluster
        on = test.nodes[:_MOST_NODES] or self._expected_nodes(testbed)
        seen = observe(testbed.cluster, canaries, on, with_claims=with_claims)
        found = failed_components(seen)
        if not found:
            self._worked_at = began
            repair.keep_canaries(seen.pods, test.evidence)
        return found

    def _expected_nodes(self, testbed: Testbed) -> list[str]:
        with contextlib.suppress(TestbedError):
            return sorted(expected_nodes(testbed.kube, self._driver_file, testbed.kept_nodes))[:_MOST_NODES]
        return []

    def _repair(self, testbed: Testbed, found: Sequence[FailedComponent], test: FailedTest) -> str:
        """Restart what failed until canary pods run. Return why that did not help, or ''."""
        failed = list(found)
        for number in range(_ROUNDS):
            try:
                for each in failed:
                    repair.restart(testbed.cluster, repair.escalated(testbed.cluster, each) if number else each)
                failed = self._look(testbed, test)
            except TestbedError as refused:
                return str(refused)
            if not failed:
                self._wait_for_driver(testbed)
                return ""
        return "; ".join(f"{each}: {each.seen}" for each in failed)

    def _wait_for_driver(self, testbed: Testbed) -> None:
        """Give the driver time to recover from what happened to the cluster. Later tests judge whether it does."""
        with contextlib.suppress(TestbedError):
            wait_ready(testbed.kube, self._driver_file, self._expected_nodes(testbed) or None)

    def _fails_only_with_test(self, testbed: Testbed, test: FailedTest) -> bool:
        """Return True if everything works for as long as the test ran. Otherwise the component fails without the test too."""
        budget = Budget("cluster without the test", _control_seconds(test), "as long as the test ran")

        def check() -> None:
            dead = dead_components(testbed.cluster)
            if dead:
                raise NotYet(", ".join(map(str, dead)))

        try:
            consistently(check, "all components to keep running without the test", budget)
        except TestbedError:
            self._repair(testbed, self._look(testbed, test), test)
            return False
        return not self._look(testbed, test)


def _control_seconds(test: FailedTest) -> float:
    return min(_LONGEST_CONTROL, max(0.0, test.ended - test.began))
