"""A cluster of somebody else, as far as it was found out and may be used. Made by the provider, found again by its folder."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from testbed.errors import ApiError, UsageError, did_you_mean
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import Owner
from testbed.models.names import safe_name
from testbed.models.sections import Allow
from testbed.process import Completed
from testbed.providers.base import Capability, Component
from testbed.providers.existing.node_pods import NodePods

_FILE = "cluster.json"


@dataclass(frozen=True)
class ClusterRecord:
    """What was found out about the cluster when the testbed was made."""

    allow: Allow
    kubernetes: str
    capabilities: frozenset[Capability]
    owner: Owner | None = None
    image: str = ""
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)  # of pods on nodes

    def save(self, folder: Path) -> None:
        """Keep them in the testbed's folder, for its owner's eyes alone."""
        content = {**asdict(self), "capabilities": sorted(self.capabilities)}
        temporary = folder / f".{_FILE}"
        temporary.unlink(missing_ok=True)
        temporary.touch(mode=0o600)
        temporary.write_text(json.dumps(content, indent=1))
        temporary.replace(folder / _FILE)

    @classmethod
    def load(cls, folder: Path) -> ClusterRecord | None:
        """Those of that folder, if they were ever found out."""
        try:
            content = json.loads((folder / _FILE).read_text())
        except FileNotFoundError:
            return None
        owner = Owner(**content["owner"]) if content["owner"] else None
        capabilities = frozenset(map(Capability, content["capabilities"]))
        key = {"key": content["key"]} if content.get("key") else {}  # testbeds of an older version have none
        return cls(Allow(content["allow"]), content["kubernetes"], capabilities, owner, content["image"], **key)


@dataclass(frozen=True)
class ExistingNode:
    """A node. What runs on it is somebody else's, so a program is run there only at the level `restart`."""

    name: str
    cluster: ExistingCluster

    def run(self, *argv: str, check: bool = True, timeout: float = 60) -> Completed:
        """Run a program on the node and keep what it said."""
        return self.cluster.on_nodes(Capability.RUN_ON_NODE).run(self.name, argv, check=check, timeout=timeout)


@dataclass(frozen=True)
class ExistingCluster:
    """Fulfils Cluster, and RestartsNodeComponents where it may and can."""

    name: str
    folder: Path
    record: ClusterRecord
    reached: Kube | None = None  # of a cluster that is only looked at, for which no file is written

    @property
    def kubeconfig(self) -> Path:
        """The copy of the user's kubeconfig, with one context."""
        return self.folder / "kubeconfig"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the level allows and the cluster can."""
        return self.record.capabilities

    @cached_property
    def kube(self) -> Kube:
        """Its API."""
        return self.reached or Kube(self.kubeconfig)

    def nodes(self) -> Sequence[ExistingNode]:
        """Its nodes, sorted by name."""
        found = sorted(str(each["metadata"]["name"]) for each in self.kube.list("v1", "Node"))
        return [ExistingNode(name, self) for name in found]

    def node(self, name: str) -> ExistingNode:
        """The node of that name."""
        nodes = {each.name: each for each in self.nodes()}
        if name not in nodes:
            raise UsageError(f"testbed {self.name} has no node {name}", hint=did_you_mean(name, nodes))
        return nodes[name]

    def components(self) -> Sequence[Component]:
        """None: its processes are not ours to look at."""
        return ()

    def collect_logs(self, into: Path) -> None:
        """What its nodes say of themselves, and the logs of all pods in namespaces that this testbed made; the rest is its owner's."""
        nodes = self.kube.list("v1", "Node")
        (into / "nodes.log").write_text("".join(f"{line}\n" for node in nodes for line in _told(node)))
        for namespace, pod in self._own_pods():
            folder = into / safe_name(namespace)
            folder.mkdir(parents=True, exist_ok=True)
            for container in _containers(pod):
                with contextlib.suppress(ApiError):  # a container that never started has no log
                    name = pod["metadata"]["name"]
                    text = self.kube.logs(namespace, name, container=container)
                    (folder / f"{safe_name(name)}.{safe_name(container)}.log").write_text(text)

    def stop_kubelet(self, node: str) -> None:
        """End the kubelet; its pods go on."""
        self.on_nodes(Capability.RESTART_KUBELET).stop(node, "kubelet")

    def start_kubelet(self, node: str) -> None:
        """Start the kubelet again."""
        self.on_nodes(Capability.RESTART_KUBELET).start(node, "kubelet")

    def stop_runtime(self, node: str) -> None:
        """End the container runtime; containers go on."""
        self.on_nodes(Capability.RESTART_RUNTIME).stop(node, "runtime")

    def start_runtime(self, node: str) -> None:
        """Start the container runtime again."""
        self.on_nodes(Capability.RESTART_RUNTIME).start(node, "runtime")

    def on_nodes(self, needed: Capability) -> NodePods:
        """The way onto the nodes, where it is open."""
        if needed not in self.capabilities or self.record.owner is None:
            closed = (
                "the cluster does not let us" if self.record.allow is Allow.RESTART else "that needs --allow restart"
            )
            raise UsageError(f"testbed {self.name} cannot {needed}: {closed}", hint="docs/existing.md, the levels")
        return NodePods(self.kube, self.record.owner, self.record.image, self.record.key)

    def _own_pods(self) -> Iterator[tuple[str, Object]]:
        """Pods in namespaces that are ours by their labels: a selector that an API server ignores is not believed."""
        if self.record.owner is None or Capability.MAKE_OBJECTS not in self.capabilities:
            return
        with contextlib.suppress(ApiError):
            for namespace in self.kube.list("v1", "Namespace", labelSelector=self.record.owner.selector):
                if self.record.owner.owns(namespace):
                    name = str(namespace["metadata"]["name"])
                    yield from ((name, pod) for pod in self.kube.list("v1", "Pod", name))


def _containers(pod: Object) -> list[str]:
    return [str(each["name"]) for key in ("initContainers", "containers") for each in pod["spec"].get(key) or ()]


def _told(node: Object) -> list[str]:
    """A node's programs and conditions."""
    name, status = node["metadata"]["name"], node.get("status", {})
    info = status.get("nodeInfo", {})
    programs = (
        f"{name}: kubelet {info.get('kubeletVersion')}, {info.get('containerRuntimeVersion')}, {info.get('osImage')}"
    )
    conditions = [f"{name}: {c['type']} {c['status']}: {c.get('message', '')}" for c in status.get("conditions", ())]
    return [programs, *conditions]
