"""The folder of a local cluster: its paths, the nodes' files, and the records of the cluster and of its processes. Starts nothing.

cluster.json     the address range and the nodes
Corefile         the configuration of CoreDNS
containers.json  the base OCI spec of the nodes' containers
pki/             certificates and kubeconfigs
etcd/  logs/
control-plane/   the control plane's machine: boot.log, pids/ (its processes)
nodes/NAME/      a node's machine: files/ (its initial files), upper/ (its overlay layer), disk/ (on the real file system), boot.log, pids/
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from testbed import state_files
from testbed.process import ProcessId
from testbed.providers.local import components
from testbed.providers.local.cgroups import cgroup_of
from testbed.providers.local.components import NODE_FILES, ClusterSettings
from testbed.providers.local.services import dns, proxy
from testbed.state_files import Content, typed

_LOCALHOST = (
    "127.0.0.1 localhost\n::1 localhost\n"  # for minimal hosts without /etc/hosts, because no pod starts without one
)
DISK_PATHS = (
    "/var/lib/kubelet",
    "/var/lib/containerd",
    "/var/log/pods",
    "/var/log/containers",
    "/var/lib/cni",
)


@dataclass(frozen=True)
class Layout:
    """The paths of one local cluster."""

    folder: Path

    @property
    def pki(self) -> Path:
        """Certificates and kubeconfigs."""
        return self.folder / "pki"

    @property
    def logs(self) -> Path:
        """One file per component."""
        return self.folder / "logs"

    @property
    def corefile(self) -> Path:
        """The configuration of CoreDNS."""
        return self.folder / "Corefile"

    @property
    def etcd(self) -> Path:
        """The data of etcd."""
        return self.folder / "etcd"

    @property
    def control_plane(self) -> Path:
        """The folder of the control plane's machine."""
        return self.folder / "control-plane"

    def node(self, name: str) -> Path:
        """Return the folder of a node's machine."""
        return self.folder / "nodes" / name

    @property
    def container_spec(self) -> Path:
        """The base OCI spec of the nodes' containers."""
        return self.folder / "containers.json"

    def log(self, component: str) -> Path:
        """Return the log file of a component."""
        return self.logs / f"{component}.log"

    def make(self) -> None:
        """Create the missing folders; only their owner can access them."""
        for folder in (
            self.folder,
            self.pki,
            self.logs,
            self.etcd,
            self.control_plane,
            self.folder / "nodes",
        ):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_node(layout: Layout, settings: ClusterSettings, name: str, index: int) -> Path:
    """Write all initial files of a node; return the node's folder."""
    folder, pki = layout.node(name), layout.pki
    own = folder / "files" / NODE_FILES.strip("/")
    own.mkdir(parents=True, exist_ok=True)
    for source, target in (
        (pki / "ca.crt", own / "ca.crt"),
        (pki / f"kubelet-{name}.crt", own / "kubelet.crt"),
        (pki / f"kubelet-{name}.key", own / "kubelet.key"),
        (pki / f"kubelet-{name}.kubeconfig", own / "kubelet.kubeconfig"),
        (pki / proxy.KUBECONFIG, own / proxy.KUBECONFIG),
    ):
        shutil.copy(source, target)
    _write(
        folder / "files/etc/dra-testbed/kubelet.json",
        components.kubelet_configuration(settings, cgroup_of(settings.name, settings.addresses.octet, name)),
    )
    _write(own / proxy.FILE, proxy.configuration(settings, name))
    _write(folder / "files/etc/containerd/config.toml", components.containerd_configuration(settings))
    _write(folder / f"files{components.CONTAINER_SPEC}", layout.container_spec.read_text())
    _write(folder / "files/etc/cni/net.d/10-testbed.conflist", components.pod_network(settings, index))
    _write(folder / "files/etc/resolv.conf", dns.resolv_conf(settings.addresses))
    _write(folder / "files/etc/hosts", host_file(Path("/etc/hosts"), _LOCALHOST))
    _write(folder / "programs", components.node_programs(settings.artifacts.programs))
    _write(folder / "disk.paths", "\n".join(DISK_PATHS) + "\n")
    return folder


@dataclass
class ClusterRecord:
    """The content of cluster.json, from which another process can attach to the cluster."""

    path: Path
    octet: int = 0
    nodes: tuple[str, ...] = ()
    kubernetes: str = ""
    egress_port: int = 0

    def save(self) -> None:
        """Write the file."""
        content = {**vars(self), "nodes": list(self.nodes)}
        del content["path"]
        state_files.write(self.path, content)

    @classmethod
    def load(cls, path: Path) -> ClusterRecord | None:
        """Return the record of a cluster, or None if there is none. Raise DamagedState if it is damaged."""

        def build(content: Content) -> ClusterRecord:
            octet, port = typed(content, "octet", int), typed(content, "egress_port", int)
            nodes = tuple(state_files.strings(content, "nodes"))
            return cls(path, octet, nodes, typed(content, "kubernetes", str), port)

        return state_files.read(path, build)


def save_process_id(folder: Path, component: str, process: ProcessId) -> None:
    """Record a process that was started in a machine."""
    pids = folder / "pids"
    pids.mkdir(mode=0o700, exist_ok=True)
    # Not durable, because no process survives a power failure.
    state_files.write_text(pids / component, f"{process.pid} {process.started}", is_durable=False)


def load_process_id(folder: Path, component: str) -> ProcessId | None:
    """Return the recorded process of a component; None if there is none."""
    try:
        pid, started = (folder / "pids" / component).read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    return ProcessId(int(pid), int(started))


def load_process_ids(folder: Path) -> dict[str, ProcessId]:
    """Return all recorded processes by component."""
    known = {path.name: load_process_id(folder, path.name) for path in sorted((folder / "pids").glob("[!.]*"))}
    return {name: process for name, process in known.items() if process}


def host_file(path: Path, otherwise: str) -> str:
    """Return the content of a host's file. On many hosts the file is a link into /run, which is empty in a node."""
    real = Path(os.path.realpath(path))
    return real.read_text() if real.is_file() else otherwise


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
