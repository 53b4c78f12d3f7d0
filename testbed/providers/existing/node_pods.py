"""Access to the nodes of an existing cluster, through a privileged pod on the node. Only at the level `restart`.

A pod runs a program on its node with `nsenter`. While the kubelet or the runtime is stopped, no new pod starts and none executes commands.
So a pod, the keeper, starts before the first of them is stopped, and stays until both run again. It serves one page, which the API server's
proxy reaches over the pod network; a request to it stops or starts a component. If this process is killed in between, nothing stays broken:
a timer of the node's systemd starts a stopped component again.

Every pod on the network can reach that page, so it acts only on requests with the testbed's key. The pod has only a hash of the key, so
reading pods does not reveal it, and no Secret is needed. The key is stored in the testbed's folder and sent as a cookie, because audit logs
record URLs. There is no NetworkPolicy: the source address of the API server's proxy differs between clusters, and a wrong policy would
block the only way to start the kubelet again.
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
_STATE = Budget("component of a node", 60, "systemd waits for a service to end")
_RESTART_AFTER = 600  # seconds after which systemd starts a component that was stopped
_STOPPING = "stopping"  # the keeper's answer to a stop
_COOKIE = "dra-testbed"  # cookies are the only free header that all versions of busybox pass to a CGI script
_ENDED = ("Failed", "Succeeded")  # a pod in this phase is never restarted; on a node of another architecture it fails
_COMPONENTS = ("kubelet", "runtime")
_UNITS = {"containerd": "containerd", "cri-o": "crio"}  # by the runtime in the node's status


@dataclass(frozen=True)
class NodePods:
    """Our pods on nodes, in a namespace that is removed with the testbed."""

    kube: Kube
    owner: Owner
    image: str
    key: str = field(repr=False)

    @property
    def namespace(self) -> str:
        """The namespace of the pods."""
        return f"dra-testbed-nodes-{self.owner.identity}"

    def run(self, node: str, argv: Sequence[str], *, check: bool = True, timeout: float = 60) -> Completed:
        """Run a program on a node and return its output."""
        self.create_namespace()
        with self._pod(node) as pod:
            return self._enter(pod, argv, check=check, timeout=timeout)

    def create_namespace(self) -> None:
        """Create the namespace of the pods. Call it once before creating several pods in parallel."""
        for manifest in self._manifests():
            if manifest["kind"] != "Pod":
                self.kube.apply(self.owner.mark(manifest), manager=self.owner.manager)

    def capabilities(self, node: str) -> tuple[frozenset[Capability], str]:
        """Test what the node permits; return that, and why the rest is missing. The namespace must exist."""
        able = frozenset({Capability.RUN_ON_NODE})
        try:
            with self._pod(node, serves=True) as pod:
                if self._enter(pod, ["true"], check=False, timeout=30).code:
                    return frozenset(), f"nsenter does not work in {self.image}"
                lacking = self._lacking(node, pod)
        except TestbedError as refused:
            return frozenset(), refused.what
        if lacking:
            return able, f"{lacking}, so kubelet and runtime cannot be restarted"
        return able | {Capability.RESTART_KUBELET, Capability.RESTART_RUNTIME}, ""

    def stop(self, node: str, component: str) -> None:
        """Stop the kubelet or the runtime of a node, and wait until it has stopped."""
        unit = self._unit(node, component)
        keeper = self._keeper(node)
        answer = self._request(keeper, f"stop={unit}")
        if answer != _STOPPING:
            raise TestbedError(f"{unit} of node {node} was not stopped: {answer or 'no answer from systemd'}")
        self._wait_until(node, keeper, unit, "inactive", "failed")

    def start(self, node: str, component: str) -> None:
        """Start the kubelet or the runtime of a node, and wait until it runs."""
        unit = self._unit(node, component)
        keeper = self._keeper(node)
        self._request(keeper, f"start={unit}")
        self._wait_until(node, keeper, unit, "active")
        if all(self._request(keeper, f"state={self._unit(node, each)}") == "active" for each in _COMPONENTS):
            self._remove(keeper)

    def _keeper(self, node: str) -> str:
        """Return the node's keeper; start one if none works. Never replace one that works: without the kubelet, no new pod can start."""
        name = f"keeper-{hashlib.sha256(node.encode()).hexdigest()[:10]}"
        found = self.kube.find("v1", "Pod", name, self.namespace)
        if found and (_is_running(found) or self._answers(name)):
            return name
        if found:
            self._remove(name)
        self.create_namespace()
        return self._start_pod(node, name, serves=True)

    def _lacking(self, node: str, pod: str) -> str:
        """Return why kubelet and runtime of the node cannot be restarted; '' if they can."""
        for component in _COMPONENTS:
            try:
                unit = self._unit(node, component)
                state = self._request(pod, f"state={unit}")
            except TestbedError as refused:
                return refused.what
            if state != "active":
                return f"systemd reports the state of {unit} as {state or 'unknown'}"
        return ""

    def _unit(self, node: str, component: str) -> str:
        if component == "kubelet":
            return component
        info = self.kube.get("v1", "Node", node).get("status", {}).get("nodeInfo", {})
        runtime = str(info.get("containerRuntimeVersion", "")).partition(":")[0]
        if runtime not in _UNITS:
            raise TestbedError(
                f"node {node} runs {runtime or 'an unknown container runtime'}, whose systemd unit is not known",
                hint=f"known: {', '.join(_UNITS)}",
            )
        return _UNITS[runtime]

    def _answers(self, keeper: str) -> bool:
        """Return True if the keeper answers. Its status may be stale while the kubelet is stopped."""
        try:
            return bool(self._request(keeper, "state=kubelet"))
        except ApiError:
            return False

    def _wait_until(self, node: str, pod: str, unit: str, *wanted: str) -> None:
        def check() -> None:
            try:
                state = self._request(pod, f"state={unit}")
            except ApiError as lost:
                state = lost.what
            if state not in wanted:
                raise NotYet(state)

        eventually(check, f"{unit} of node {node} to be {wanted[0]}", _STATE)

    def _request(self, pod: str, query: str) -> str:
        """Send a query to the pod's page and return the answer. The API server's proxy needs no kubelet for it."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}:8080/proxy/cgi-bin/unit"
        key = [("Cookie", f"{_COOKIE}={self.key}")]
        return str(self.kube.request("GET", path, query={"q": query}, timeout=30, headers=key)).strip()

    def _enter(self, pod: str, argv: Sequence[str], *, check: bool = True, timeout: float = 60) -> Completed:
        done = self.kube.exec_unchecked(self.namespace, pod, [*_ENTER, *argv], timeout=timeout)
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
        eventually(lambda: self._check(name), f"pod {name} on node {node} to run", _RUNS, longest_pause=0.1)
        return name

    def _manifests(self, node: str = "", name: str = "", *, serves: bool = False) -> Iterator[Object]:
        """Yield the manifests of a pod, its namespace and service account. With `serves` the pod serves the page."""
        variables: dict[str, object] = {
            "pods_namespace": self.namespace,
            "name": name,
            "node": node,
            "image": self.image,
        }
        variables |= {"serves": serves, "key_hash": hashlib.sha256(self.key.encode()).hexdigest()}
        variables |= {"cookie": _COOKIE, "restart_after": _RESTART_AFTER, "stopping": _STOPPING}
        template = Path(__file__).with_name("node_pod.yaml")
        yield from yaml.safe_load_all(render_file(template, variables))

    def _check(self, name: str) -> None:
        pod = self.kube.get("v1", "Pod", name, self.namespace)
        if pod.get("status", {}).get("phase") in _ENDED:
            raise TestbedError(
                f"pod {name} in namespace {self.namespace} has ended: {_state(pod)}",
                hint=f"the image {self.image} must run on the node's architecture",
            )
        if not _is_running(pod):
            raise NotYet(_state(pod))

    def _remove(self, name: str) -> None:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": self.namespace}}
        with missing_ok():
            self.kube.delete(pod, grace=0)


def _is_running(pod: Object) -> bool:
    """Return True if the pod's containers are ready. The condition Ready is not used: it becomes False when the kubelet is stopped."""
    statuses = pod.get("status", {}).get("containerStatuses", ())
    ends = "deletionTimestamp" in pod["metadata"]
    return bool(statuses) and all(each.get("ready") for each in statuses) and not ends


def _state(pod: Object) -> str:
    status = pod.get("status", {})
    waiting = [
        f"{kind}: {state.get('reason', '')} {state.get('message', '')}".strip()
        for each in status.get("containerStatuses", ())
        for kind, state in each.get("state", {}).items()
    ]
    return "; ".join([str(status.get("phase", "new")), *waiting])
