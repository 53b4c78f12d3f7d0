"""Nodes where the driver is expected: stop and start their kubelets, and reboot them. After a test, the kubelet runs again."""

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


class Node(str):  # noqa: SLOT000 - it has attributes
    """A node. It is a string with its name, so that it can be used wherever a name is expected."""

    _world: World
    _cluster: Cluster
    _stopped: bool
    _is_runtime_stopped: bool

    def __new__(cls, name: str, world: World, cluster: Cluster) -> Self:
        """Create the string, which cannot be done in __init__."""
        made = super().__new__(cls, name)
        made._world, made._cluster, made._stopped, made._is_runtime_stopped = world, cluster, False, False
        return made

    def label(self, name: str) -> str:
        """Return the value of a label; Blocked if the node lacks it. kubernetes.io/hostname may differ from the name."""
        found = self._world.kube.get("v1", "Node", self)["metadata"].get("labels") or {}
        if name not in found:
            raise Blocked(f"node {self} has no label {name}")
        return str(found[name])

    def stop_kubelet(self) -> None:
        """Stop the kubelet. Pods keep running; changes to them take effect when it is started again."""
        self._parts.stop_kubelet(self)
        self._stopped = True

    def start_kubelet(self) -> None:
        """Start the kubelet, and wait until it is ready to work.

        Then the node is Ready, the node's earlier slices are deleted, as each starting kubelet does, and logs of its pods can be read.
        """
        before = self._slices()
        self._parts.start_kubelet(self)
        self._stopped = False
        eventually(lambda: self._check_started(before), f"the kubelet of {self} to be ready", budgets.NODE_READY)

    def restart_kubelet(self) -> None:
        """Stop the kubelet and start it again."""
        self.stop_kubelet()
        self.start_kubelet()

    def restart_runtime(self) -> None:
        """Stop the container runtime and start it again, and wait until the kubelet reaches it. Containers keep running."""
        self._parts.stop_runtime(self)
        self._is_runtime_stopped = True
        self._start_runtime()
        eventually(self._check_runtime, f"the kubelet of {self} to reach its container runtime", budgets.NODE_READY)

    @property
    def runtime_handler(self) -> str:
        """Return the name of a handler that the node's container runtime has; Blocked if the node reports none."""
        status = self._world.kube.get("v1", "Node", self).get("status", {})
        names = [str(each["name"]) for each in status.get("runtimeHandlers") or () if each.get("name")]
        if not names:
            raise Blocked(f"node {self} reports no handler of its container runtime (status.runtimeHandlers)")
        return "runc" if "runc" in names else names[0]

    def reboot(self) -> None:
        """Reboot the node, and wait until it is Ready and no container from before the reboot counts as running."""
        before = self._running_containers()
        cast("RebootsNodes", self._cluster).reboot(self)

        def booted() -> None:
            _check_ready(self._world.kube.get("v1", "Node", self))
            if before & self._running_containers():
                raise NotYet("the kubelet has not yet reported that the old containers have ended")

        eventually(booted, f"{self} to be Ready after its reboot", budgets.NODE_READY)

    def _start_runtime(self) -> None:
        self._parts.start_runtime(self)
        self._is_runtime_stopped = False

    def ensure_kubelet_runs(self) -> None:
        """Start the container runtime and the kubelet if they are stopped."""
        if self._is_runtime_stopped:
            self._start_runtime()
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
        self._check_logs()

    def _check_runtime(self) -> None:
        _check_ready(self._world.kube.get("v1", "Node", self))
        self._check_logs()

    def _check_logs(self) -> None:
        """Raise NotYet unless the kubelet serves logs: one that has just started does not know its pods, or waits for its runtime."""
        for pod in self._own_pods():
            try:
                self._world.kube.logs(
                    pod["metadata"]["namespace"],
                    pod["metadata"]["name"],
                    container=pod["spec"]["containers"][0]["name"],
                )
            except ApiError as refused:
                raise NotYet(str(refused)) from refused

    def _own_pods(self) -> list[Object]:
        """Return the running pods of the testbed's scenarios on this node."""
        selectors = {"labelSelector": self._world.owner.selector, "fieldSelector": f"spec.nodeName={self}"}
        return [pod for pod in self._world.kube.list("v1", "Pod", **selectors) if _container_ids(pod)]

    def _running_containers(self) -> frozenset[str]:
        drivers = [
            pod for pod in driver_pods(self._world.kube, self._world.driver_file) if pod["spec"].get("nodeName") == self
        ]
        return frozenset(each for pod in (*drivers, *self._own_pods()) for each in _container_ids(pod))


@contextlib.contextmanager
def restored_node(name: str, world: World, cluster: Cluster) -> Iterator[Node]:
    """Yield a node for one test, and make sure that its kubelet runs afterwards."""
    node = Node(name, world, cluster)
    try:
        yield node
    finally:
        node.ensure_kubelet_runs()


def _check_ready(node: Object) -> None:
    conditions = node.get("status", {}).get("conditions", ())
    ready: Object = next((each for each in conditions if each["type"] == "Ready"), {})
    if ready.get("status") != "True":
        raise NotYet(f"condition Ready is {ready.get('status', 'missing')}: {ready.get('message', '')}")


def _container_ids(pod: Object) -> list[str]:
    statuses = pod.get("status", {}).get("containerStatuses", ())
    return [str(each["containerID"]) for each in statuses if "running" in each.get("state", {})]
