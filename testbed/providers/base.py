"""What every provider, cluster and node can do, and the small optional abilities beside it. Plain protocols, no code.

An ability that a cluster does not have is a Capability that it does not list; it is never a silent no-op.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from testbed.process import Completed, ProcessId

if TYPE_CHECKING:  # suites import this module for Capability, and collecting them shall be quick
    from testbed.kube.client import Kube
    from testbed.kube.ownership import Owner
    from testbed.kube.rights import Right
    from testbed.progress import Progress


class Capability(enum.StrEnum):
    """The optional abilities, by name; requirements ask for them."""

    MAKE_OBJECTS = "make-objects"  # pods, claims, namespaces: a cluster may be there only to be looked at
    LOAD_IMAGE = "load-image"
    RUN_ON_NODE = "run-on-node"
    RESTART_KUBELET = "restart-kubelet"
    RESTART_RUNTIME = "restart-runtime"
    REBOOT_NODE = "reboot-node"
    CHANGE_DRIVER = "change-driver"  # end, move and update the pods of the driver under test
    RESTART_API_SERVER = "restart-api-server"
    PROCESS_ON_NODE = "process-on-node"
    DRIVER_SOCKET = "driver-socket"
    KUBELET_METRICS = "kubelet-metrics"
    ACT_AS_DRIVER = "act-as-driver"  # what the driver's account may do is asked, and tried in its name


@dataclass(frozen=True)
class Problem:
    """Something about this host or request that will not work, and what to do about it."""

    what: str
    cure: str
    fatal: bool = True


@dataclass(frozen=True)
class NodeImage:
    """What nodes that are containers are made of, for one Kubernetes version: a published image, or one made here as an archive."""

    kubernetes: str
    published: str
    make: Callable[[Progress], tuple[str, Path]]  # its reference, and the archive


@dataclass(frozen=True)
class ClusterSpec:
    """What is asked of a provider; everything has been validated before."""

    kubernetes: str
    nodes: int = 2
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    gates_unknown_to_scheduler: frozenset[str] = frozenset()
    runtime_config: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, Path] = field(default_factory=dict)
    images: Sequence[Path] = ()
    sandbox_image: str = ""
    kubelet: str = ""  # the kubelets' version, where it is another one
    node_image: Callable[[str], NodeImage] | None = None  # for a version
    options: object = None  # what the configuration says to this provider alone
    given: frozenset[str] = frozenset()  # what somebody asked for; all else are defaults
    owner: Owner | None = None  # marks what a provider makes through the API
    workload_image: str = ""  # for a pod of the provider's own
    driver_nodes: Callable[[Kube], Collection[str]] | None = None  # of the driver under test, where there is one


@dataclass(frozen=True)
class Component:
    """A process that the cluster is made of and that should run."""

    name: str
    process: ProcessId | None  # None where it is nobody's on this host
    alive: bool


@runtime_checkable
class Node(Protocol):
    """One node of a cluster."""

    @property
    def name(self) -> str:
        """Its name in Kubernetes."""

    def run(self, *argv: str, check: bool = True, timeout: float = 60) -> Completed:
        """Run a program on the node and keep what it said."""


@runtime_checkable
class Cluster(Protocol):
    """A cluster that exists."""

    @property
    def name(self) -> str:
        """The testbed's name."""

    @property
    def kubeconfig(self) -> Path:
        """An administrator's kubeconfig, readable by its owner alone."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The optional abilities that it has."""

    def nodes(self) -> Sequence[Node]:
        """Its nodes, sorted by name; with those that no pod is placed on."""

    def components(self) -> Sequence[Component]:
        """The processes that should run, as far as the provider can see them."""

    def collect_logs(self, into: Path) -> None:
        """Copy the logs of its components into a folder."""


class Provider(Protocol):
    """Makes, finds and deletes clusters."""

    def programs(self) -> Sequence[str]:
        """The upstream programs that it needs, by their names in the lock file; the ones that users wait for least come last."""

    def preflight(self, spec: ClusterSpec) -> list[Problem]:
        """What will not work here, found without touching anything. UsageError for what this provider cannot be asked for at all."""

    def create(self, name: str, spec: ClusterSpec, state: Path, progress: Progress) -> Cluster:
        """Make the cluster and wait until it is usable."""

    def attach(self, name: str, state: Path) -> Cluster | None:
        """The cluster of that name, when it is there."""

    def delete(self, name: str, state: Path) -> None:
        """Remove all of it. Twice is fine, and so is after kill -9 in the middle of create."""

    def sweep(self, in_use: Callable[[Path], bool]) -> list[str]:
        """Remove what killed runs left on this host; `in_use` says which folders belong to a living testbed."""


@runtime_checkable
class FindsClusters(Protocol):
    """Of a provider whose clusters are somebody else's: they are looked at before anything is made, and stay when the testbed goes."""

    def find(self, spec: ClusterSpec) -> tuple[Cluster, Kube]:
        """The cluster, only looked at, and its API; no file is written. Every way in which it does not fit is an error."""

    def describe(self, spec: ClusterSpec) -> str:
        """Which cluster is meant, in a few words."""

    def needs(self, spec: ClusterSpec) -> Collection[Right]:
        """What the user must be allowed to do in it."""


@runtime_checkable
class LoadsImages(Protocol):
    """Capability.LOAD_IMAGE."""

    def load_image(self, archive: Path) -> None:
        """Import an OCI archive into every node."""


@runtime_checkable
class RestartsParts(Protocol):
    """Capability.RESTART_KUBELET and RESTART_RUNTIME, by node."""

    def stop_kubelet(self, node: str) -> None:
        """End the kubelet; its pods go on."""

    def start_kubelet(self, node: str) -> None:
        """Start the kubelet again."""

    def stop_runtime(self, node: str) -> None:
        """End the container runtime; containers go on."""

    def start_runtime(self, node: str) -> None:
        """Start the container runtime again."""


@runtime_checkable
class RebootsNodes(Protocol):
    """Capability.REBOOT_NODE."""

    def reboot(self, node: str) -> None:
        """Everything on the node ends, what lies on tmpfs is lost, and it comes back."""


@runtime_checkable
class RestartsApiServer(Protocol):
    """Capability.RESTART_API_SERVER."""

    def restart_api_server(self) -> None:
        """End the API server and start it again; returns when it is ready."""


@runtime_checkable
class ReachesSockets(Protocol):
    """Capability.DRIVER_SOCKET."""

    def socket(self, node: str, path: str) -> Path:
        """A path on this host that leads to a node's socket, for as long as the node runs."""


@runtime_checkable
class RunsProcesses(Protocol):
    """Capability.PROCESS_ON_NODE."""

    def start_process(self, node: str, argv: Sequence[str], *, log: Path, env: Mapping[str, str]) -> ProcessId:
        """Start a long-lived program on a node, without an image; it ends with the node."""
