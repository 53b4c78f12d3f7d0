"""The way onto the nodes of a cluster that is not ours: a privileged pod on the node, for as long as it is needed. Level `restart` alone.

A program on a node is run by such a pod through `nsenter`. Where kubelet or runtime are stopped no new pod starts and none takes commands,
so one pod, the keeper, is there before the first part of a node stops, and stays until all run again. It serves one page, which the API
server's proxy reaches by the pod network alone; through it parts are stopped and started in any order. Whoever is killed in between leaves
nothing broken: a timer of the node's systemd starts a stopped part by itself.

Everybody on the pod network reaches that page, so it does only what comes with the testbed's key. The pod knows no more of the key than its
hash: who may read pods learns nothing from it, and nobody needs rights on Secrets. The key is in the testbed's folder, and comes as a
cookie, because audit logs keep addresses. No NetworkPolicy beside it: from where an API server's proxy comes (a host, a tunnel's agent)
differs from cluster to cluster, and one that guesses wrong would keep out the only way back.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from testbed.errors import ApiError, CommandFailed, TestbedError
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
_COOKIE = "dra-testbed"  # the one header of free choice that each busybox hands to such a page, however old
_ENDED = ("Failed", "Succeeded")  # it is never started again, as on a node of another architecture
_PARTS = ("kubelet", "runtime")
_UNITS = {"containerd": "containerd", "cri-o": "crio"}  # by what a node says about its runtime


@dataclass(frozen=True)
class NodePods:
    """Pods of ours on nodes, in a namespace of their own that goes with the testbed."""

    kube: Kube
    owner: Owner
    image: str
    key: str = field(repr=False)

    @property
    def namespace(self) -> str:
        """Where they are."""
        return f"dra-testbed-nodes-{self.owner.identity}"

    def run(self, node: str, argv: Sequence[str], *, check: bool = True, timeout: float = 60) -> Completed:
        """Run a program on a node and keep what it said."""
        self.make_home()
        with self._pod(node) as pod:
            return self._enter(pod, argv, check=check, timeout=timeout)

    def make_home(self) -> None:
        """The namespace of the pods. Whoever makes several pods at once calls it before."""
        for manifest in self._manifests():
            if manifest["kind"] != "Pod":
                self.kube.apply(self.owner.mark(manifest), manager=self.owner.manager)

    def abilities(self, node: str) -> tuple[frozenset[Capability], str]:
        """What is possible on the node, tried out, and why the rest is not. Its home is there."""
        able = frozenset({Capability.RUN_ON_NODE})
        try:
            with self._pod(node, serves=True) as pod:
                if self._enter(pod, ["true"], check=False, timeout=30).code:
                    return frozenset(), f"{self.image} has no nsenter that works"
                lacking = self._lacking(node, pod)
        except TestbedError as refused:
            return frozenset(), refused.what
        if lacking:
            return able, f"{lacking}, so nothing is restarted"
        return able | {Capability.RESTART_KUBELET, Capability.RESTART_RUNTIME}, ""

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
        self.make_home()
        return self._start_pod(node, name, serves=True)

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
        key = [("Cookie", f"{_COOKIE}={self.key}")]
        return str(self.kube.request("GET", path, query={"q": question}, timeout=30, headers=key)).strip()

    def _enter(self, pod: str, argv: Sequence[str], *, check: bool = True, timeout: float = 60) -> Completed:
        done = self.kube.attempt(self.namespace, pod, [*_ENTER, *argv], timeout=timeout)
        if check and done.code:
            raise CommandFailed(argv, f"exit {done.code}", done.stderr or done.stdout)
        return Completed(tuple(argv), done.code, done.stdout, done.stderr)

    @contextlib.contextmanager
    def _pod(self, node: str, *, serves: bool = False) -> Iterator[str]:
        name = f"run-{secrets.token_hex(5)}"
        try:
            yield self._start_pod(node, name, serves=serves)
        finally:
            self._remove(name)

    def _start_pod(self, node: str, name: str, *, serves: bool) -> str:
        for manifest in self._manifests(node, name, serves=serves):
            if manifest["kind"] == "Pod":
                self.kube.apply(self.owner.mark(manifest), manager=self.owner.manager)
        eventually(lambda: self._check(name), f"our pod {name} on node {node} to run", _RUNS, longest_pause=0.1)
        return name

    def _manifests(self, node: str = "", name: str = "", *, serves: bool = False) -> Iterator[Object]:
        """The pod and its home. `serves` is whether it has the page."""
        variables: dict[str, object] = {"home": self.namespace, "name": name, "node": node, "image": self.image}
        variables |= {"serves": serves, "lock": hashlib.sha256(self.key.encode()).hexdigest()}
        variables |= {"cookie": _COOKIE, "back": _BACK, "stopping": _STOPPING}
        template = Path(__file__).with_name("node_pod.yaml")
        yield from yaml.safe_load_all(render_file(template, variables))

    def _check(self, name: str) -> None:
        pod = self.kube.get("v1", "Pod", name, self.namespace)
        if pod.get("status", {}).get("phase") in _ENDED:
            raise TestbedError(f"our pod {name} has ended: {_told(pod)}")
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
