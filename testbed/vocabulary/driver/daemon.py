"""The word `daemon`: the pods of the driver under test, which end, stay away from a node for a while, and are updated.

A DaemonSet has made them, as those of nearly all drivers; which one, their owner references say. A driver that was kept away is back
after the test.
"""

from __future__ import annotations

import contextlib
import copy
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from testbed.drivers.ready import driver_pods, wait_ready
from testbed.errors import DriverFailed, UsageError, WaitTimeout
from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.world import World
from testbed.waiting import Budget, NotYet, eventually

# What `kubectl rollout restart` writes, too: the template is another one, and nothing else has changed.
_UPDATED = "kubectl.kubernetes.io/restartedAt"


@dataclass(frozen=True)
class Daemon:
    """The driver's pods. `kept` has, by the name of a DaemonSet, its spec before the driver left a node."""

    world: World
    kept: dict[str, Object] = field(default_factory=dict)

    def restart(self, node: str) -> None:
        """Delete the driver's pod on a node, and wait until its successor is ready."""
        old = self._pods_on({node})
        for pod in old:
            self.world.kube.delete(pod)
        self._wait_until_gone(old, f"the driver's pod on {node} to be gone")
        self._wait_until_ready()

    def stop_on(self, node: str) -> None:
        """The driver goes from a node, and stays away until `start_again`. On others it is not touched."""
        for each in self._daemonsets():
            self.kept.setdefault(each["metadata"]["name"], copy.deepcopy(each["spec"]))
            self._write(each, _without(each["spec"], node))
        self._wait_until_gone(self._pods_on({node}), f"the driver to be gone from {node}")

    def start_again(self) -> None:
        """The driver is where it was before, and ready."""
        for each in self._daemonsets():
            before = self.kept.pop(each["metadata"]["name"], None)
            if before:
                self._write(each, before)
        self._wait_until_ready()

    def update(self) -> None:
        """Update the driver on all nodes, as its DaemonSet does that, and wait until all old pods are gone and the new ones ready.

        A DaemonSet with `OnDelete` leaves that to its owner, who deletes one pod after the other.
        """
        old = self.start_update()
        self.should_be_updated(old)

    def start_update(self) -> list[Object]:
        """Change the DaemonSet's template, and delete the first pod where its owner has to; the pods that are old now."""
        old = self._pods()
        for each in self._daemonsets():
            annotations = {_UPDATED: secrets.token_hex(4)}
            self.world.kube.patch(each, {"spec": {"template": {"metadata": {"annotations": annotations}}}})
        for pod in self._left_to_the_owner(old)[:1]:
            self.world.kube.delete(pod)
        return old

    def should_be_updated(self, old: list[Object]) -> None:
        """Wait until the update is through on all nodes, which it takes one by one: a pod that does not get ready holds it up."""
        expected = "the update of the driver to be through"
        try:
            for pod in self._left_to_the_owner(old):
                self.world.kube.delete(pod)
                self._wait_until_gone([pod], expected)
                self._wait_until_ready()
            self._wait_until_gone(old, expected, budgets.repeated(budgets.DRIVER_PODS, len(old)))
        except WaitTimeout as late:
            raise DriverFailed(f"expected {expected}\n  last seen: {late.last_seen}\n  waited: {late.budget}") from late
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        """It was ready here before, with the same image: when it does not come back, that is its own doing."""
        try:
            wait_ready(self.world.kube, self.world.driver_file)
        except WaitTimeout as late:
            raise DriverFailed(
                f"expected {late.waited_for} to be ready again\n  last seen: {late.last_seen}\n  waited: {late.budget}"
            ) from late

    def _left_to_the_owner(self, old: list[Object]) -> list[Object]:
        """The pods that their DaemonSet keeps as they are until somebody deletes them, in the order of their nodes."""
        strategies = {each["metadata"]["name"]: each["spec"].get("updateStrategy", {}) for each in self._daemonsets()}
        theirs = {name for name, strategy in strategies.items() if strategy.get("type") == "OnDelete"}
        found = [pod for pod in old if theirs.intersection(_owners(pod))]
        return sorted(found, key=lambda pod: str(pod["spec"]["nodeName"]))

    def _wait_until_gone(self, old: list[Object], expected: str, budget: Budget = budgets.DRIVER_PODS) -> None:
        uids = {pod["metadata"]["uid"] for pod in old}

        def gone() -> None:
            left = [pod["metadata"]["name"] for pod in self._pods() if pod["metadata"]["uid"] in uids]
            if left:
                raise NotYet(f"still there: {', '.join(left)}")

        eventually(gone, expected, budget, longest_pause=0.1)

    def _pods(self) -> list[Object]:
        """All of them, also those that are on their way out."""
        pods = self.world.driver_file.pods
        found = self.world.kube.list("v1", "Pod", pods.namespace, labelSelector=pods.selector)
        return [pod for pod in found if pod["spec"].get("nodeName")]

    def _pods_on(self, nodes: Iterable[str]) -> list[Object]:
        return [pod for pod in self._pods() if pod["spec"]["nodeName"] in nodes]

    def _daemonsets(self) -> list[Object]:
        """Those that the driver's pods belong to, also while there is no pod."""
        namespace = self.world.driver_file.pods.namespace
        mine = {owner for pod in driver_pods(self.world.kube, self.world.driver_file) for owner in _owners(pod)}
        found = self.world.kube.list("apps/v1", "DaemonSet", namespace)
        sets = [each for each in found if each["metadata"]["name"] in {*mine, *self.kept}]
        if not sets:
            raise UsageError(
                f"the pods of driver {self.world.driver_file.name} belong to no DaemonSet",
                hint="tests that end or update a driver can only judge one that a DaemonSet has made",
            )
        return sets

    def _write(self, daemonset: Object, spec: Object) -> None:
        self.world.kube.patch(daemonset, {"spec": change(daemonset["spec"], spec)})


@contextlib.contextmanager
def restored_driver(world: World) -> Iterator[Daemon]:
    """The driver's pods for one test; the driver is on all its nodes afterwards, however the test ends."""
    daemon = Daemon(world)
    try:
        yield daemon
    finally:
        if daemon.kept:
            daemon.start_again()


def change(now: Any, wanted: Any) -> Any:
    """The merge patch that makes the one from the other."""
    if not isinstance(now, dict) or not isinstance(wanted, dict):
        return wanted
    gone = {key: None for key in now if key not in wanted}
    return gone | {key: change(now.get(key), value) for key, value in wanted.items() if now.get(key) != value}


def _without(spec: Object, node: str) -> Object:
    """The same, but for that node. Pods elsewhere have an old template now, which nobody minds with OnDelete."""
    made = copy.deepcopy(spec)
    made["updateStrategy"] = {"type": "OnDelete"}
    affinity = made["template"]["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": [{}]})
    for term in required["nodeSelectorTerms"]:  # one of them is enough for a pod, so each has to say it
        elsewhere = {"key": "metadata.name", "operator": "NotIn", "values": [str(node)]}
        term["matchFields"] = [*term.get("matchFields", ()), elsewhere]
    return made


def _owners(pod: Object) -> list[str]:
    references = pod["metadata"].get("ownerReferences", ())
    return [str(each["name"]) for each in references if each["kind"] == "DaemonSet"]
