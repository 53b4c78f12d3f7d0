"""The pods of the driver under test: restart them, stop them on a node, update them. The driver runs on all its nodes after the test.

This requires that they belong to a DaemonSet, as those of nearly all drivers do. Their owner references name it.
"""

from __future__ import annotations

import contextlib
import copy
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from testbed.drivers.changed_daemonsets import change, undo
from testbed.drivers.ready import wait_ready
from testbed.errors import DriverFailed, UsageError, WaitTimeout
from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.world import World
from testbed.waiting import Budget, NotYet, eventually

# The annotation that `kubectl rollout restart` sets to change the template and nothing else.
_UPDATED = "kubectl.kubernetes.io/restartedAt"


@dataclass(frozen=True)
class Daemon:
    """The driver's pods. `kept` has the original spec of each DaemonSet that was changed, by name."""

    world: World
    kept: dict[str, Object] = field(default_factory=dict)

    def restart(self, node: str) -> float:
        """Delete the driver's pod on a node, and wait until a new one is ready. Return the seconds that this took."""
        began, old = time.monotonic(), self._pods_on({node})
        for pod in old:
            self.world.kube.delete(pod)
        self._wait_until_gone(old, f"the driver's pod on {node} to be gone")
        self._wait_until_ready()
        return time.monotonic() - began

    def kill_on(self, node: str) -> None:
        """Kill the driver's pod on a node without a grace period, and wait until a new one is ready."""
        old = self._pods_on({node})
        for pod in old:
            self.world.kube.delete(pod, grace=0)
        self._wait_until_gone(old, f"the driver's pod on {node} to be gone")
        self._wait_until_ready()

    def stop_on(self, node: str) -> None:
        """Stop the driver on a node until `start_again` is called. On other nodes it keeps running."""
        for each in self._daemonsets():
            original = self.kept.setdefault(each["metadata"]["name"], copy.deepcopy(each["spec"]))
            wanted, process = _without(each["spec"], node), self.world.process
            change(self.world.kube, each, wanted, original, self.world.owner, process=process)
        self._wait_until_gone(self._pods_on({node}), f"the driver to be gone from {node}")

    def start_again(self) -> None:
        """Start the driver on all its nodes again, and wait until it is ready."""
        for each in self._daemonsets():
            undo(self.world.kube, each, self.world.owner)
        self.kept.clear()
        self._wait_until_ready()

    def update(self) -> float:
        """Update the driver on all nodes, and wait until all old pods are gone and the new ones are ready. Return the seconds it took.

        With the update strategy OnDelete, the old pods are deleted one after another.
        """
        began, old = time.monotonic(), self.start_update()
        self.should_be_updated(old)
        return time.monotonic() - began

    def start_update(self) -> list[Object]:
        """Change the DaemonSet's template and return the old pods. With the update strategy OnDelete, delete the first one."""
        old = self.pods()
        for each in self._daemonsets():
            annotations = {_UPDATED: secrets.token_hex(4)}
            self.world.kube.patch(each, {"spec": {"template": {"metadata": {"annotations": annotations}}}})
        for pod in self._to_be_deleted(old)[:1]:
            self.world.kube.delete(pod)
        return old

    def should_be_updated(self, old: list[Object]) -> None:
        """Wait until the update is complete on all nodes, one after another. A pod that does not become ready stops the update."""
        expected = "the update of the driver to be complete"
        try:
            for pod in self._to_be_deleted(old):
                self.world.kube.delete(pod)
                self._wait_until_gone([pod], expected)
                self._wait_until_ready()
            self._wait_until_gone(old, expected, budgets.repeated(budgets.DRIVER_PODS, len(old)))
        except WaitTimeout as late:
            raise DriverFailed(f"expected {expected}\n  last seen: {late.last_seen}\n  waited: {late.budget}") from late
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        """Wait until the driver is ready, or blame the driver, which was ready before with the same image."""
        try:
            wait_ready(self.world.kube, self.world.driver_file, self.world.nodes)
        except WaitTimeout as late:
            raise DriverFailed(
                f"expected {late.waited_for} to be ready again\n  last seen: {late.last_seen}\n  waited: {late.budget}"
            ) from late

    def _to_be_deleted(self, old: list[Object]) -> list[Object]:
        """Return the pods that their DaemonSet does not replace itself (OnDelete), in the order of their nodes."""
        sets = self.world.kube.list("apps/v1", "DaemonSet", self.world.driver_file.pods.namespace)
        strategies = {each["metadata"]["name"]: each["spec"].get("updateStrategy", {}) for each in sets}
        theirs = {name for name, strategy in strategies.items() if strategy.get("type") == "OnDelete"}
        found = [pod for pod in old if theirs.intersection(_owners(pod))]
        return sorted(found, key=lambda pod: str(pod["spec"]["nodeName"]))

    def _wait_until_gone(self, old: list[Object], expected: str, budget: Budget = budgets.DRIVER_PODS) -> None:
        uids = {pod["metadata"]["uid"] for pod in old}

        def gone() -> None:
            left = [pod["metadata"]["name"] for pod in self.pods() if pod["metadata"]["uid"] in uids]
            if left:
                raise NotYet(f"still there: {', '.join(left)}")

        eventually(gone, expected, budget, longest_pause=0.1)

    def pods(self) -> list[Object]:
        """Return all pods, including terminating ones."""
        pods = self.world.driver_file.pods
        found = self.world.kube.list("v1", "Pod", pods.namespace, labelSelector=pods.selector)
        return [pod for pod in found if pod["spec"].get("nodeName")]

    def _pods_on(self, nodes: Iterable[str]) -> list[Object]:
        return [pod for pod in self.pods() if pod["spec"]["nodeName"] in nodes]

    def _daemonsets(self) -> list[Object]:
        """Return the DaemonSets of the driver's pods, also of those that are stopped."""
        found = self.world.kube.list("apps/v1", "DaemonSet", self.world.driver_file.pods.namespace)
        sets = [each for each in found if each["metadata"]["name"] in self._names]
        if not sets:
            raise UsageError(
                f"the pods of driver {self.world.driver_file.name} belong to no DaemonSet",
                hint="tests that restart or update the driver need a DaemonSet",
            )
        return sets

    @cached_property
    def _names(self) -> frozenset[str]:
        """Return the names of the DaemonSets. They are read once, before a change: during an update without surge there may be no pod."""
        return frozenset(owner for pod in self.pods() for owner in _owners(pod))


@contextlib.contextmanager
def restored_driver(world: World) -> Iterator[Daemon]:
    """Yield the driver's pods for one test, and make sure that the driver runs on all its nodes afterwards."""
    daemon = Daemon(world)
    try:
        yield daemon
    finally:
        if daemon.kept:
            daemon.start_again()


def _without(spec: Object, node: str) -> Object:
    """Return the spec with an affinity that excludes the node. OnDelete keeps the pods on other nodes, whose template is old now."""
    made = copy.deepcopy(spec)
    made["updateStrategy"] = {"type": "OnDelete"}
    affinity = made["template"]["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": [{}]})
    for term in required["nodeSelectorTerms"]:  # terms are alternatives, so each has to exclude the node
        elsewhere = {"key": "metadata.name", "operator": "NotIn", "values": [str(node)]}
        term["matchFields"] = [*term.get("matchFields", ()), elsewhere]
    return made


def _owners(pod: Object) -> list[str]:
    references = pod["metadata"].get("ownerReferences", ())
    return [str(each["name"]) for each in references if each["kind"] == "DaemonSet"]
