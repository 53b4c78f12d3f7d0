"""The protocols of providers, clusters and nodes, and the data that they exchange; everything above the providers uses them.

Optional capabilities have their own protocols. A cluster lists those that it has; a capability is never a silent no-op.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from testbed.process import Completed, ProcessId

if TYPE_CHECKING:  # suites import this module for Capability, and pytest should collect them quickly
    from testbed.kube.client import Kube
    from testbed.kube.ownership import Owner
    from testbed.kube.permissions import Permission
    from testbed.progress import Progress

T = TypeVar("T")


class Capability(enum.StrEnum):
    """An optional ability of a cluster. A requirement names those that it needs."""

    MAKE_OBJECTS = "make-objects"  # pods, claims, namespaces; with --allow read-only nothing may be created
    LOAD_IMAGE = "load-image"
    RUN_ON_NODE = "run-on-node"
    RESTART_KUBELET = "restart-kubelet"
    RESTART_RUNTIME = "restart-runtime"
    REBOOT_NODE = "reboot-node"
    RESET_NODE = "reset-node"  # forget what kubelet and drivers stored on its disk; only nodes that the provider made
    CHANGE_DRIVER = "change-driver"  # restart, move and update the driver under test
    RESTART_API_SERVER = "restart-api-server"
    RESTART_CONTROL_PLANE = "restart-control-plane"  # its other components: etcd, scheduler, controller manager
    PROCESS_ON_NODE = "process-on-node"
    DRIVER_SOCKET = "driver-socket"
    KUBELET_METRICS = "kubelet-metrics"
    ACT_AS_DRIVER = "act-as-driver"  # review the permissions of the driver's service account, and act as it


# No requirement needs these: they only repair what failed during a test.
REPAIRS = frozenset({Capability.RESET_NODE, Capability.RESTART_CONTROL_PLANE})


@dataclass(frozen=True)
class HostProblem:
    """Something on this host or in the request that does not work, and what to do about it."""

    what: str
    cure: str
    fatal: bool = True


@dataclass(frozen=True)
class NodeImage:
    """The image for nodes that are containers, for one Kubernetes version: published in a registry, or made here as an archive."""

    kubernetes: str
    published: str
    make: Callable[[Progress], tuple[str, Path]]  # returns the reference and the archive


@dataclass(frozen=True)
class ClusterSpec:
    """The cluster that the user asks for. It is validated and complete before anything is made; `up` and `--plan` use the same one."""

    kubernetes: str
    nodes: int = 2
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    gates_unknown_to_scheduler: frozenset[str] = frozenset()
    runtime_config: Mapping[str, str] = field(default_factory=dict)
    kubelet: str = ""  # the version of the kubelets, if it differs
    options: object = None  # the section of the configuration that is for this provider alone
    given: frozenset[str] = frozenset()  # the settings that the user gave; all others have their defaults
    workload_image: str = ""  # for pods that the provider itself creates
    driver_nodes: Callable[[Kube], Collection[str]] | None = None  # the nodes of the driver under test, if there is one


@dataclass(frozen=True)
class Artifacts:
    """The upstream programs and the images that a cluster is made from."""

    programs: Mapping[str, Path] = field(default_factory=dict)
    images: Sequence[Path] = ()  # archives to load into every node
    sandbox_image: str = ""
    node_images: Mapping[str, NodeImage] = field(default_factory=dict)  # by Kubernetes version


@dataclass(frozen=True)
class FoundCluster:
    """An existing cluster before anything is created in it. `problems` lists what can be tolerated."""

    cluster: Cluster
    kube: Kube
    problems: Sequence[HostProblem] = ()


@dataclass(frozen=True)
class Component:
    """A process that must run for the cluster to work."""

    name: str
    process: ProcessId | None  # None if it is no process of this host
    alive: bool


@runtime_checkable
class Node(Protocol):
    """One node of a cluster."""

    @property
    def name(self) -> str:
        """The node's name in Kubernetes."""

    def run(self, *argv: str, check: bool = True, timeout: float = 60) -> Completed:
        """Run a program on the node and return its output."""


@runtime_checkable
class Cluster(Protocol):
    """A cluster that exists."""

    @property
    def name(self) -> str:
        """The name of the testbed."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; only its owner can read it."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities of this cluster."""

    def nodes(self) -> Sequence[Node]:
        """Return all nodes, sorted by name, including those that take no pods."""

    def components(self) -> Sequence[Component]:
        """Return the processes that should run, as far as the provider can see them."""

    def collect_logs(self, into: Path) -> None:
        """Copy the logs of all components into a folder."""


class Provider(Protocol):
    """What every provider does. Each one also is either a ClusterMaker or a ClusterFinder; `dispatch` says which."""

    def dispatch(self, *, maker: Callable[[ClusterMaker], T], finder: Callable[[ClusterFinder], T]) -> T:
        """Return `maker(self)` if this provider makes its clusters, `finder(self)` if it finds them."""

    def node_facilities(self) -> Collection[str]:
        """Return which values of spec.needs of driver files its nodes fulfil, as far as that is known."""

    def attach(self, name: str, state: Path) -> Cluster | None:
        """Return the cluster of a testbed from its folder; None if there is none."""

    def delete(self, name: str, state: Path) -> None:
        """Remove everything of the cluster. It may be called twice, and after `create` was killed half-way."""

    def sweep(self, in_use: Callable[[Path], bool]) -> list[str]:
        """Remove what killed runs left on this host. `in_use` says whether a folder belongs to a testbed in use."""


class ClusterMaker(Provider, Protocol):
    """A provider that makes its clusters and deletes them again."""

    def programs(self) -> Sequence[str]:
        """Return the names of the upstream programs that it needs, as the lock file has them; the least urgent last."""

    def preflight(self, spec: ClusterSpec) -> list[HostProblem]:
        """Return what will not work on this host, without changing it. Raise UsageError for a spec that it cannot fulfil."""

    def create(self, name: str, spec: ClusterSpec, artifacts: Artifacts, state: Path, progress: Progress) -> Cluster:
        """Make the cluster and wait until it is usable."""

    def privileged_access(self) -> str:
        """Return what a container with access to its node can do on this host, for the note of `up`."""


class ClusterFinder(Provider, Protocol):
    """A provider whose clusters exist already: it inspects them first, and they stay when the testbed is removed."""

    def find(self, name: str, spec: ClusterSpec) -> FoundCluster:
        """Inspect the cluster for a testbed of that name; write no file. Raise an error if the cluster cannot be used."""

    def describe(self, spec: ClusterSpec) -> str:
        """Return in a few words which cluster is meant."""

    def required_permissions(self, options: object) -> Collection[Permission]:
        """Return what the user must be allowed to do in the cluster. `options` is the provider's section of the configuration."""

    def connect(self, name: str, spec: ClusterSpec, owner: Owner, state: Path, progress: Progress) -> Cluster:
        """Record how to reach the cluster, and test what its nodes allow. Everything created there is marked with `owner`."""


@runtime_checkable
class LoadsImages(Protocol):
    """Capability.LOAD_IMAGE."""

    def load_image(self, archive: Path) -> None:
        """Import an OCI archive into every node."""


@runtime_checkable
class RestartsNodeComponents(Protocol):
    """Capability.RESTART_KUBELET and RESTART_RUNTIME, by node."""

    def stop_kubelet(self, node: str) -> None:
        """Stop the kubelet; its pods keep running."""

    def start_kubelet(self, node: str) -> None:
        """Start the kubelet again."""

    def stop_runtime(self, node: str) -> None:
        """Stop the container runtime; containers keep running."""

    def start_runtime(self, node: str) -> None:
        """Start the container runtime again."""


@runtime_checkable
class RebootsNodes(Protocol):
    """Capability.REBOOT_NODE."""

    def reboot(self, node: str) -> None:
        """Reboot the node: all processes end, the content of tmpfs is lost, and the node starts again."""


@runtime_checkable
class ResetsNodes(Protocol):
    """Capability.RESET_NODE."""

    def reset_node(self, node: str) -> None:
        """Reboot the node without what its kubelet and its drivers stored about claims and devices, on disk too."""


# What a kubelet and drivers store about claims and devices, by shell pattern.
STORED_ABOUT_CLAIMS = (
    "/var/lib/kubelet/dra_manager_state",
    "/var/lib/kubelet/plugins/*",
    "/var/lib/kubelet/plugins_registry/*",
    "/etc/cdi/*",
    "/var/run/cdi/*",
)


@runtime_checkable
class RestartsApiServer(Protocol):
    """Capability.RESTART_API_SERVER."""

    def restart_api_server(self) -> None:
        """Restart the API server and wait until it is ready."""


@runtime_checkable
class RestartsControlPlane(Protocol):
    """Capability.RESTART_CONTROL_PLANE."""

    def restart_control_plane(self, component: str) -> None:
        """Restart etcd, kube-scheduler or kube-controller-manager, also one that does not answer. It need not be ready yet."""


@runtime_checkable
class ReachesSockets(Protocol):
    """Capability.DRIVER_SOCKET."""

    def socket(self, node: str, path: str) -> Path:
        """Return a path on this host that leads to a socket of the node. It is valid until the node stops."""


@runtime_checkable
class RunsProcesses(Protocol):
    """Capability.PROCESS_ON_NODE."""

    def start_process(self, node: str, argv: Sequence[str], *, log: Path, env: Mapping[str, str]) -> ProcessId:
        """Start a long-running program on a node, without an image; it ends with the node."""

    def copy_to_node(self, node: str, source: Path, target: str) -> None:
        """Copy a file of this host to a path on a node. It keeps its permissions."""
