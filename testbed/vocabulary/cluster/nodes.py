"""The word `node`: a node where the driver is expected, and what happens to it: its kubelet ends and starts, it loses its power.

Whatever a test did to it, its kubelet runs again afterwards.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Self, cast

from testbed.drivers.ready import driver_pods
from testbed.errors import ApiError, Blocked
from testbed.kube.client import Object
from testbed.providers.base import Cluster, RebootsNodes, RestartsNodeComponents
from testbed.vocabulary import budgets
from testbed.vocabulary.world import World
from testbed.waiting import NotYet, eventually


class Node(str):  # noqa: SLOT000 - it has more than its text
    """One node. It is its name, so that whoever knows nodes by their names takes it."""

    _world: World
    _cluster: Cluster
    _stopped: bool

    def __new__(cls, name: str, world: World, cluster: Cluster) -> Self:
        """A str gets its text here."""
        made = super().__new__(cls, name)
        made._world, made._cluster, made._stopped = world, cluster, False
        return made

    def label(self, name: str) -> str:
        """The value of one of its labels. That of kubernetes.io/hostname need not be its name."""
        found = self._world.kube.get("v1", "Node", self)["metadata"].get("labels") or {}
        if name not in found:
            raise Blocked(f"node {self} has no label {name}")
        return str(found[name])

    def stop_kubelet(self) -> None:
        """End its kubelet. Pods go on; what is asked of them happens when it is back."""
        self._parts.stop_kubelet(self)
        self._stopped = True

    def start_kubelet(self) -> None:
        """Start its kubelet again; wait until it has found its feet.

        That is: the node is Ready, the slices of the node are deleted, as each kubelet does that starts, and its pods are known to it.
        """
        before = self._slices()
        self._parts.start_kubelet(self)
        self._stopped = False
        eventually(lambda: self._check_started(before), f"the kubelet of {self} to be back", budgets.NODE_READY)

    def restart_kubelet(self) -> None:
        """End its kubelet and start it again."""
        self.stop_kubelet()
        self.start_kubelet()

    def reboot(self) -> None:
        """Cut its power and start it; wait until nothing of what ran before is taken for running any more."""
        before = self._running_containers()
        cast("RebootsNodes", self._cluster).reboot(self)

        def booted() -> None:
            _check_ready(self._world.kube.get("v1", "Node", self))
            if before & self._running_containers():
                raise NotYet("the kubelet has not told yet that the containers have ended")

        eventually(booted, f"{self} to be Ready after its reboot", budgets.NODE_READY)

    def ensure_kubelet_runs(self) -> None:
        """Its kubelet runs."""
        if self._stopped:
            self.start_kubelet()

    @property
    def _parts(self) -> RestartsNodeComponents:
        return cast("RestartsNodeComponents", self._cluster)

    def _slices(self) -> frozenset[str]:
        return frozenset(
            str(each["metadata"].get("uid")) for each in self._world.slices() if each["spec"].get("nodeName") == self
        )

    def _check_started(self, slices: frozenset[str]) -> None:
        _check_ready(self._world.kube.get("v1", "Node", self))
        if slices & self._slices():
            raise NotYet("the kubelet has not deleted the slices of its node yet")
        for pod in self._own_pods():
            # A kubelet that has just started knows no pod for a moment, and whoever wants into one is refused.
            try:
                self._world.kube.logs(
                    pod["metadata"]["namespace"],
                    pod["metadata"]["name"],
                    container=pod["spec"]["containers"][0]["name"],
                )
            except ApiError as refused:
                raise NotYet(str(refused)) from refused

    def _own_pods(self) -> list[Object]:
        """What runs here of the testbed's scenarios."""
        selectors = {"labelSelector": self._world.owner.selector, "fieldSelector": f"spec.nodeName={self}"}
        return [pod for pod in self._world.kube.list("v1", "Pod", **selectors) if _container_ids(pod)]

    def _running_containers(self) -> frozenset[str]:
        drivers = [
            pod for pod in driver_pods(self._world.kube, self._world.driver_file) if pod["spec"].get("nodeName") == self
        ]
        return frozenset(each for pod in (*drivers, *self._own_pods()) for each in _container_ids(pod))


@contextlib.contextmanager
def restored_node(name: str, world: World, cluster: Cluster) -> Iterator[Node]:
    """A node for one test; its kubelet runs afterwards, however the test ends."""
    node = Node(name, world, cluster)
    try:
        yield node
    finally:
        node.ensure_kubelet_runs()


def _check_ready(node: Object) -> None:
    conditions = node.get("status", {}).get("conditions", ())
    ready: Object = next((each for each in conditions if each["type"] == "Ready"), {})
    if ready.get("status") != "True":
        raise NotYet(f"Ready is {ready.get('status', 'not there')}: {ready.get('message', '')}")


def _container_ids(pod: Object) -> list[str]:
    statuses = pod.get("status", {}).get("containerStatuses", ())
    return [str(each["containerID"]) for each in statuses if "running" in each.get("state", {})]
