"""An existing cluster: its record, its nodes, and what may be done to them. The provider connects and attaches to it."""

from __future__ import annotations

import contextlib
import secrets
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from testbed import process, state_files
from testbed.errors import ApiError, UsageError, did_you_mean
from testbed.kube.client import Kube, Object
from testbed.kube.nodes import is_ready
from testbed.kube.ownership import Owner
from testbed.models.names import safe_name
from testbed.models.sections import Allow
from testbed.process import Completed
from testbed.providers.base import Capability, Component
from testbed.providers.existing.node_pods import NodePods
from testbed.state_files import Content, typed
from testbed.waiting import Budget, NotYet, eventually

_FILE = "cluster.json"
_REBOOTED = Budget("node rebooted", 900, "servers with many devices need minutes for their firmware")


@dataclass(frozen=True)
class FoundClusterRecord:
    """The content of cluster.json: what was found out about the cluster when the testbed was made."""

    allow: Allow
    kubernetes: str
    capabilities: frozenset[Capability]
    owner: Owner | None = None
    image: str = ""
    reboot_command: str = ""  # the node's name is its last argument
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)  # authenticates us to pods on nodes

    def save(self, folder: Path) -> None:
        """Write the record into the testbed's folder, readable only by its owner."""
        state_files.write(folder / _FILE, {**asdict(self), "capabilities": sorted(self.capabilities)})

    @classmethod
    def load(cls, folder: Path) -> FoundClusterRecord | None:
        """Return the record in that folder; None if there is none. Raise DamagedState if it is damaged."""

        def build(content: Content) -> FoundClusterRecord:
            owner = Owner(**typed(content, "owner", dict)) if content["owner"] else None
            capabilities = frozenset(map(Capability, state_files.strings(content, "capabilities")))
            key = {"key": typed(content, "key", str)} if content.get("key") else {}  # older versions wrote none
            allow, version = Allow(content["allow"]), typed(content, "kubernetes", str)
            reboot = typed({"reboot_command": "", **content}, "reboot_command", str)
            return cls(allow, version, capabilities, owner, typed(content, "image", str), reboot, **key)

        return state_files.read(folder / _FILE, build)


@dataclass(frozen=True)
class ExistingNode:
    """A node of an existing cluster. Programs can be run on it only at the level `restart`."""

    name: str
    cluster: ExistingCluster

    def run(self, *argv: str, check: bool = True, timeout: float = 60) -> Completed:
        """Run a program on the node and return its output."""
        return self.cluster.on_nodes(Capability.RUN_ON_NODE).run(self.name, argv, check=check, timeout=timeout)


@dataclass(frozen=True)
class ExistingCluster:
    """A Cluster that also restarts components of nodes, if the level allows it and the nodes permit it."""

    name: str
    folder: Path
    record: FoundClusterRecord
    reached: Kube | None = None  # set while the cluster is only inspected, and there is no kubeconfig file yet

    @property
    def kubeconfig(self) -> Path:
        """The copy of the user's kubeconfig, with one context."""
        return self.folder / "kubeconfig"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities that the level allows and the cluster has."""
        return self.record.capabilities

    @cached_property
    def kube(self) -> Kube:
        """The cluster's API."""
        return self.reached or Kube(self.kubeconfig)

    def nodes(self) -> Sequence[ExistingNode]:
        """Return all nodes, sorted by name."""
        found = sorted(str(each["metadata"]["name"]) for each in self.kube.list("v1", "Node"))
        return [ExistingNode(name, self) for name in found]

    def node(self, name: str) -> ExistingNode:
        """Return the node of that name. Raise UsageError if there is none."""
        nodes = {each.name: each for each in self.nodes()}
        if name not in nodes:
            raise UsageError(f"testbed {self.name} has no node {name}", hint=did_you_mean(name, nodes))
        return nodes[name]

    def components(self) -> Sequence[Component]:
        """Return an empty list: the cluster's processes are not visible."""
        return ()

    def collect_logs(self, into: Path) -> None:
        """Write the status of the nodes, and copy the logs of all pods in namespaces that this testbed created."""
        nodes = self.kube.list("v1", "Node")
        (into / "nodes.log").write_text("".join(f"{line}\n" for node in nodes for line in _describe(node)))
        for namespace, pod in self._own_pods():
            folder = into / safe_name(namespace)
            folder.mkdir(parents=True, exist_ok=True)
            for container in _containers(pod):
                with contextlib.suppress(ApiError):  # a container that never started has no log
                    name = pod["metadata"]["name"]
                    text = self.kube.logs(namespace, name, container=container)
                    (folder / f"{safe_name(name)}.{safe_name(container)}.log").write_text(text)

    def stop_kubelet(self, node: str) -> None:
        """Stop the kubelet; its pods keep running."""
        self.on_nodes(Capability.RESTART_KUBELET).stop(node, "kubelet")

    def start_kubelet(self, node: str) -> None:
        """Start the kubelet and wait until it runs."""
        self.on_nodes(Capability.RESTART_KUBELET).start(node, "kubelet")

    def stop_runtime(self, node: str) -> None:
        """Stop the container runtime; containers keep running."""
        self.on_nodes(Capability.RESTART_RUNTIME).stop(node, "runtime")

    def start_runtime(self, node: str) -> None:
        """Start the container runtime and wait until it runs."""
        self.on_nodes(Capability.RESTART_RUNTIME).start(node, "runtime")

    def reboot(self, node: str) -> None:
        """Reboot a node with the user's command, and wait until its kubelet reports a new boot and is ready."""
        before = _boot_id(self.kube.get("v1", "Node", node))
        process.run([*shlex.split(self.record.reboot_command), node], timeout=_REBOOTED.seconds)

        def rebooted() -> None:
            found = _node_if_answered(self.kube, node)
            if _boot_id(found) == before:
                raise NotYet(f"the kubelet still reports the boot ID {before}")
            if not is_ready(found):
                raise NotYet("it has a new boot ID, and is not ready")

        hint = "the command must reboot the machine; a node of kind is a container, and keeps its host's boot ID when it restarts"
        eventually(rebooted, f"node {node} to be rebooted", _REBOOTED, hint=hint)

    def on_nodes(self, needed: Capability) -> NodePods:
        """Return the access to the nodes. Raise UsageError if the cluster lacks the needed capability."""
        if needed not in self.capabilities or self.record.owner is None:
            allowed = self.record.allow is Allow.RESTART
            why = "the cluster does not permit it" if allowed else "that needs --allow restart"
            raise UsageError(f"testbed {self.name} cannot {needed}: {why}", hint="see the levels in docs/existing.md")
        return NodePods(self.kube, self.record.owner, self.record.image, self.record.key)

    def _own_pods(self) -> Iterator[tuple[str, Object]]:
        """Yield the pods in namespaces of this testbed. Check the labels too, because an API server may ignore the selector."""
        if self.record.owner is None or Capability.MAKE_OBJECTS not in self.capabilities:
            return
        with contextlib.suppress(ApiError):
            for namespace in self.kube.list("v1", "Namespace", labelSelector=self.record.owner.selector):
                if self.record.owner.owns(namespace):
                    name = str(namespace["metadata"]["name"])
                    yield from ((name, pod) for pod in self.kube.list("v1", "Pod", name))


def _node_if_answered(kube: Kube, name: str) -> Object:
    """Return a node. Raise NotYet if the API server does not answer, which may run there, or a cloud has removed the node meanwhile."""
    try:
        return kube.get("v1", "Node", name)
    except ApiError as lost:
        if lost.status and lost.status != 404 and not lost.overloaded:
            raise
        raise NotYet(str(lost)) from lost


def _boot_id(node: Object) -> str:
    return str(node["status"]["nodeInfo"]["bootID"])


def _containers(pod: Object) -> list[str]:
    return [str(each["name"]) for key in ("initContainers", "containers") for each in pod["spec"].get(key) or ()]


def _describe(node: Object) -> list[str]:
    """Return lines with a node's programs and conditions."""
    name, status = node["metadata"]["name"], node.get("status", {})
    info = status.get("nodeInfo", {})
    programs = (
        f"{name}: kubelet {info.get('kubeletVersion')}, {info.get('containerRuntimeVersion')}, {info.get('osImage')}"
    )
    conditions = [f"{name}: {c['type']} {c['status']}: {c.get('message', '')}" for c in status.get("conditions", ())]
    return [programs, *conditions]
