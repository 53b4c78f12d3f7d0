"""The way onto the nodes of a cluster that is not ours: a privileged pod on the node, for as long as it is needed. Level `restart` alone.

A program on a node is run by such a pod through `nsenter`. Where kubelet or runtime are stopped no new pod starts and none takes commands,
so one pod, the keeper, is there before the first part of a node stops, and stays until all run again. It serves one page, which the API
server's proxy reaches by the pod network alone; through it parts are stopped and started in any order. Whoever is killed in between leaves
nothing broken: a timer of the node's systemd starts a stopped part by itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from testbed.errors import ApiError, CommandFailed, TestbedError, WaitTimeout
from testbed.kube.client import Kube, Object, missing_ok
from testbed.kube.ownership import Owner
from testbed.process import Completed
from testbed.providers.base import Capability
from testbed.rendering import render_file
from testbed.waiting import Budget, NotYet, eventually

_ENTER = ("nsenter", "-t", "1", "-m", "-u", "-i", "-n", "-p", "--")
_RUNS = Budget("pod on a node", 60, "an image may have to be pulled")
_STATE = Budget("part of a node", 60, "systemd waits for a service to end")
_BACK = 600  # seconds after which a part that nobody starts again starts by itself
_STOPPING = "stopping"  # what the keeper says when it has begun
_PARTS = ("kubelet", "runtime")
_UNITS = {"containerd": "containerd", "cri-o": "crio"}  # by what a node says about its runtime


@dataclass(frozen=True)
class NodePods:
    """Pods of ours on nodes, in a namespace of their own that goes with the testbed."""

    kube: Kube
    owner: Owner
    image: str

    @property
    def namespace(self) -> str:
        """Where they are."""
        return f"dra-testbed-nodes-{self.owner.identity}"

    def run(self, node: str, argv: Sequence[str], *, check: bool = True, timeout: float = 60) -> Completed:
        """Run a program on a node and keep what it said."""
        with self._pod(node) as pod:
            return self._enter(pod, argv, check=check, timeout=timeout)

    def abilities(self, nodes: Sequence[str]) -> tuple[frozenset[Capability], str]:
        """What is possible on all of the nodes, tried out, and why the rest is not."""
        able = {Capability.RUN_ON_NODE, Capability.RESTART_KUBELET, Capability.RESTART_RUNTIME}
        for node in nodes:
            try:
                with self._pod(node) as pod:
                    if self._enter(pod, ["true"], check=False, timeout=30).code:
                        return frozenset(), f"node {node}: {self.image} has no nsenter that works"
                    lacking = self._lacking(node, pod)
            except (ApiError, WaitTimeout) as refused:
                return frozenset(), f"node {node}: {refused.what}"
            if lacking:
                return frozenset({Capability.RUN_ON_NODE}), f"node {node}: {lacking}, so nothing is restarted"
        return frozenset(able), ""

    def stop(self, node: str, part: str) -> None:
        """Stop a part of a node; returns when it has ended."""
        unit = self._unit(node, part)
        keeper = self._keeper(node)
        said = self._ask(keeper, f"stop={unit}")
        if said != _STOPPING:
            raise TestbedError(f"{unit} of node {node} was not stopped: {said or 'systemd said nothing'}")
        self._until(node, keeper, unit, "inactive", "failed")

    def start(self, node: str, part: str) -> None:
        """Start a part that was stopped; returns when it runs."""
        unit = self._unit(node, part)
        keeper = self._keeper(node)
        self._ask(keeper, f"start={unit}")
        self._until(node, keeper, unit, "active")
        if all(self._ask(keeper, f"state={self._unit(node, each)}") == "active" for each in _PARTS):
            self._remove(keeper)

    def _keeper(self, node: str) -> str:
        """The node's keeper. It cannot be started any more once a part is stopped, so one that works is never replaced; any other is."""
        name = f"keeper-{hashlib.sha256(node.encode()).hexdigest()[:10]}"
        found = self.kube.find("v1", "Pod", name, self.namespace)
        if found and (_is_running(found) or self._answers(name)):
            return name
        if found:
            self._remove(name)
        return self._start_pod(node, name)

    def _lacking(self, node: str, pod: str) -> str:
        """Why nothing can be restarted on the node; '' when all can."""
        for part in _PARTS:
            try:
                unit = self._unit(node, part)
                said = self._ask(pod, f"state={unit}")
            except TestbedError as refused:
                return refused.what
            if said != "active":
                return f"systemd says of {unit}: {said or 'nothing'}"
        return ""

    def _unit(self, node: str, part: str) -> str:
        if part == "kubelet":
            return part
        info = self.kube.get("v1", "Node", node).get("status", {}).get("nodeInfo", {})
        runtime = str(info.get("containerRuntimeVersion", "")).partition(":")[0]
        if runtime not in _UNITS:
            raise TestbedError(f"node {node} runs {runtime or 'an unknown runtime'}, whose service is not known here")
        return _UNITS[runtime]

    def _answers(self, keeper: str) -> bool:
        """Whether it can still be asked, whatever a kubelet that is stopped said of it last."""
        try:
            return bool(self._ask(keeper, "state=kubelet"))
        except ApiError:
            return False

    def _until(self, node: str, pod: str, unit: str, *wanted: str) -> None:
        def check() -> None:
            try:
                said = self._ask(pod, f"state={unit}")
            except ApiError as lost:
                said = lost.what
            if said not in wanted:
                raise NotYet(said)

        eventually(check, f"{unit} of node {node} to be {wanted[0]}", _STATE)

    def _ask(self, pod: str, question: str) -> str:
        """Through the API server's proxy, which needs no kubelet."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}:8080/proxy/cgi-bin/unit"
        return str(self.kube.request("GET", path, query={"q": question}, timeout=30)).strip()

    def _enter(self, pod: str, argv: Sequence[str], *, check: bool = True, timeout: float = 60) -> Completed:
        done = self.kube.attempt(self.namespace, pod, [*_ENTER, *argv], timeout=timeout)
        if check and done.code:
            raise CommandFailed(argv, f"exit {done.code}", done.stderr or done.stdout)
        return Completed(tuple(argv), done.code, done.stdout, done.stderr)

    @contextlib.contextmanager
    def _pod(self, node: str) -> Iterator[str]:
        name = f"run-{secrets.token_hex(5)}"
        try:
            yield self._start_pod(node, name)
        finally:
            self._remove(name)

    def _start_pod(self, node: str, name: str) -> str:
        variables: dict[str, object] = {"home": self.namespace, "name": name, "node": node, "image": self.image}
        variables |= {"back": _BACK, "stopping": _STOPPING}
        template = Path(__file__).with_name("node_pod.yaml")
        for manifest in yaml.safe_load_all(render_file(template, variables)):
            self.kube.apply(self.owner.mark(manifest), manager=self.owner.manager)
        eventually(lambda: self._check(name), f"our pod {name} on node {node} to run", _RUNS, longest_pause=0.1)
        return name

    def _check(self, name: str) -> None:
        pod = self.kube.get("v1", "Pod", name, self.namespace)
        if not _is_running(pod):
            raise NotYet(_told(pod))

    def _remove(self, name: str) -> None:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": self.namespace}}
        with missing_ok():
            self.kube.delete(pod, grace=0)


def _is_running(pod: Object) -> bool:
    """Whether its container runs and serves: not said by the condition Ready, which is taken away where the kubelet is stopped."""
    statuses = pod.get("status", {}).get("containerStatuses", ())
    ends = "deletionTimestamp" in pod["metadata"]
    return bool(statuses) and all(each.get("ready") for each in statuses) and not ends


def _told(pod: Object) -> str:
    status = pod.get("status", {})
    waiting = [
        f"{kind}: {state.get('reason', '')} {state.get('message', '')}".strip()
        for each in status.get("containerStatuses", ())
        for kind, state in each.get("state", {}).items()
    ]
    return "; ".join([str(status.get("phase", "new")), *waiting])
