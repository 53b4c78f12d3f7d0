"""The folder of a local cluster, and what is written into it before anything starts. Knows paths and files, starts nothing.

cluster.json     the address range, the nodes, and the identity of every process
pki/             certificates and kubeconfigs
etcd/  logs/
control-plane/   the control plane's machine: boot.log
nodes/NAME/      a node's machine: files/ (what it starts with), upper/ (its layer), disk/ (real file system), boot.log
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from testbed.process import ProcessId
from testbed.providers.local import components
from testbed.providers.local.cgroups import cgroup_of
from testbed.providers.local.components import NODE_FILES, ClusterSettings

_LOCALHOST = "127.0.0.1 localhost\n::1 localhost\n"  # a minimal host has no /etc/hosts, and no pod starts without one
DISK_PATHS = (
    "/var/lib/kubelet",
    "/var/lib/containerd",
    "/var/log/pods",
    "/var/log/containers",
    "/var/lib/cni",
)


@dataclass(frozen=True)
class Layout:
    """Where everything of one local cluster lies."""

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
    def etcd(self) -> Path:
        """The database."""
        return self.folder / "etcd"

    @property
    def control_plane(self) -> Path:
        """The control plane's machine."""
        return self.folder / "control-plane"

    def node(self, name: str) -> Path:
        """A node's machine."""
        return self.folder / "nodes" / name

    def log(self, component: str) -> Path:
        """The log of a component."""
        return self.logs / f"{component}.log"

    def make(self) -> None:
        """Make the folders that do not exist yet, closed to everybody else."""
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
    """Write all files that a node starts with; returns its folder."""
    folder, pki = layout.node(name), layout.pki
    own = folder / "files" / NODE_FILES.strip("/")
    own.mkdir(parents=True, exist_ok=True)
    for source, target in (
        (pki / "ca.crt", own / "ca.crt"),
        (pki / f"kubelet-{name}.crt", own / "kubelet.crt"),
        (pki / f"kubelet-{name}.key", own / "kubelet.key"),
        (pki / f"kubelet-{name}.kubeconfig", own / "kubelet.kubeconfig"),
    ):
        shutil.copy(source, target)
    _write(
        folder / "files/etc/dra-testbed/kubelet.json",
        components.kubelet_configuration(settings, cgroup_of(settings.name, settings.addresses.octet, name)),
    )
    _write(folder / "files/etc/containerd/config.toml", components.containerd_configuration(settings))
    _write(folder / "files/etc/cni/net.d/10-testbed.conflist", components.pod_network(settings, index))
    _write(folder / "files/etc/resolv.conf", of_host(Path("/etc/resolv.conf"), ""))
    _write(folder / "files/etc/hosts", of_host(Path("/etc/hosts"), _LOCALHOST))
    _write(folder / "programs", components.node_programs(settings.artifacts.programs))
    _write(folder / "disk.paths", "\n".join(DISK_PATHS) + "\n")
    return folder


@dataclass
class ClusterRecord:
    """cluster.json: what was started, so that it can be found again by another process."""

    path: Path
    octet: int = 0
    nodes: tuple[str, ...] = ()
    kubernetes: str = ""
    egress_port: int = 0

    def save(self) -> None:
        """Write it so that a reader sees the old or the new one, never half of it."""
        content = {**vars(self), "nodes": list(self.nodes)}
        del content["path"]
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(content))
        temporary.replace(self.path)

    @classmethod
    def load(cls, path: Path) -> ClusterRecord | None:
        """The record of a cluster, or None where there is none."""
        try:
            content = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        return cls(path, **{**content, "nodes": tuple(content["nodes"])})


def save_process_id(folder: Path, component: str, process: ProcessId) -> None:
    """Write down a process that was started."""
    pids = folder / "pids"
    pids.mkdir(mode=0o700, exist_ok=True)
    (pids / component).write_text(f"{process.pid} {process.started}")


def load_process_id(folder: Path, component: str) -> ProcessId | None:
    """The process that was written down under that name."""
    try:
        pid, started = (folder / "pids" / component).read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    return ProcessId(int(pid), int(started))


def load_process_ids(folder: Path) -> dict[str, ProcessId]:
    """Every process that was written down."""
    known = {path.name: load_process_id(folder, path.name) for path in sorted((folder / "pids").glob("*"))}
    return {name: process for name, process in known.items() if process}


def of_host(path: Path, otherwise: str) -> str:
    """A file of the host that a node needs, as a plain file: on many hosts it is a link into /run, which a node has for itself."""
    real = Path(os.path.realpath(path))
    return real.read_text() if real.is_file() else otherwise


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
