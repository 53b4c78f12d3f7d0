"""A kind cluster: its nodes, its logs, and restarts of its components. The provider creates it and attaches to it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from testbed import process
from testbed.copying import copy_file
from testbed.errors import CommandFailed, TestbedError, UsageError, did_you_mean
from testbed.process import Completed
from testbed.providers.base import STORED_ABOUT_CLAIMS, Capability, Component
from testbed.providers.kind import boot_id, images
from testbed.providers.kind.configuration import SHARED
from testbed.providers.kind.engine import Engine
from testbed.providers.kind.node_processes import first_process
from testbed.waiting import Budget, NotYet, eventually

_CAPABILITIES = frozenset(Capability) - {Capability.PROCESS_ON_NODE, Capability.DRIVER_SOCKET}
_KUBELET = Budget("kubelet serving", 60, "1 s on a quiet machine, 10 s after a reboot of the node")
_SERVER = Budget("API server ready", 120, "the kubelet restarts it, with a back-off after several restarts")
_CTR = ("ctr", "--namespace", "k8s.io", "images")
# With SIGTERM alone it would wait a minute for open watches to end.
_END_SERVER = "server=$(pidof kube-apiserver); kill $server; sleep 2; kill -KILL $server 2>/dev/null || true"
_SNAPSHOTTER = r"""sed -n 's/^ *snapshotter = "\(.*\)"/\1/p' /etc/containerd/config.toml | head -n 1"""


@dataclass(frozen=True)
class KindNode:
    """A node of a kind cluster: a container of that name."""

    name: str
    engine: Engine

    def run(self, *argv: str, check: bool = True, timeout: float = 60) -> Completed:
        """Run a program on the node and return its output."""
        return self.engine.run("exec", self.name, *argv, check=check, timeout=timeout)


@dataclass(frozen=True)
class KindCluster:
    """A Cluster with every capability but RunsProcesses; ReachesSockets only where this host sees the processes of the nodes."""

    name: str
    folder: Path
    kind_name: str
    kind: Path
    engine: Engine

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; only its owner can read it."""
        return self.folder / "kubeconfig"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """All but PROCESS_ON_NODE, because the process would outlive its node. DRIVER_SOCKET needs access to the nodes' processes."""
        nodes = self.nodes()
        visible = bool(nodes) and all(first_process(node.name) for node in nodes)
        return _CAPABILITIES | ({Capability.DRIVER_SOCKET} if visible else set())

    def nodes(self) -> Sequence[KindNode]:
        """Return all nodes, sorted by name, including the control plane."""
        return [KindNode(name, self.engine) for name in self.engine.containers(self.kind_name)]

    def node(self, name: str) -> KindNode:
        """Return the node of that name. Raise UsageError if there is none."""
        nodes = {node.name: node for node in self.nodes()}
        if name not in nodes:
            raise UsageError(f"testbed {self.name} has no node {name}", hint=did_you_mean(name, nodes))
        return nodes[name]

    def components(self) -> Sequence[Component]:
        """Return the nodes' containers. systemd watches the processes in them."""
        return [Component(node.name, None, self.engine.running(node.name)) for node in self.nodes()]

    def collect_logs(self, into: Path) -> None:
        """Copy kind's own output, and the logs that kind exports from the nodes: journals, containers, pods."""
        log = self.folder / "kind.log"
        copy_file(log, into / "kind.log")
        if self.nodes():
            export: list[str | Path] = [self.kind, "export", "logs", into, "--name", self.kind_name]
            process.run(export, check=False, timeout=180, env=self.engine.environment)

    def load_image(self, archive: Path) -> None:
        """Import an OCI archive into all nodes in parallel."""
        self.load_images([archive])

    def load_images(self, archives: Sequence[Path]) -> None:
        """Import archives into all nodes in parallel, each only where its images are missing."""
        with _shared_archives(archives, self.folder / "shared") as names, ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(lambda node: _import(node, archives, names), self.nodes()))

    def stop_kubelet(self, node: str) -> None:
        """Stop the kubelet; its pods keep running."""
        self.node(node).run("systemctl", "stop", "kubelet")

    def start_kubelet(self, node: str) -> None:
        """Start the kubelet and wait until it serves."""
        self.node(node).run("systemctl", "start", "kubelet")
        _wait_for_kubelet(self.node(node))

    def stop_runtime(self, node: str) -> None:
        """Stop containerd; containers keep running under their shims."""
        self.node(node).run("systemctl", "stop", "containerd")

    def start_runtime(self, node: str) -> None:
        """Start containerd; systemd waits until it is ready."""
        self.node(node).run("systemctl", "start", "containerd")

    def reboot(self, node: str) -> None:
        """Reboot the node: all processes end, the content of tmpfs is lost, and the node starts again."""
        boot_id.prepare(self.node(node))
        self.engine.run("restart", "--time", "5", node, timeout=120)
        _wait_for_kubelet(self.node(node))

    def reset_node(self, node: str) -> None:
        """Reboot the node without what its kubelet and its drivers stored about claims and devices, on disk too."""
        self.stop_kubelet(node)
        self.node(node).run("sh", "-c", f"rm -rf {' '.join(STORED_ABOUT_CLAIMS)}")
        self.reboot(node)

    def restart_api_server(self) -> None:
        """Kill the API server and wait until the kubelet has started another one that is ready."""
        control_plane = next(node for node in self.nodes() if node.name.endswith("-control-plane"))
        before = control_plane.run("pidof", "kube-apiserver").stdout
        control_plane.run("sh", "-c", _END_SERVER)

        def ready() -> None:
            now = control_plane.run("pidof", "kube-apiserver", check=False).stdout
            if not now or now == before:
                raise NotYet("the old process is still ending" if now else "no new process yet")
            request = ("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "get", "--raw", "/readyz")
            answer = control_plane.run(*request, check=False)
            if not answer.ok:
                raise NotYet(answer.stderr.strip())

        eventually(ready, "the API server to be ready again", _SERVER, longest_pause=0.5)

    def restart_control_plane(self, component: str) -> None:
        """Kill a static pod's process. The kubelet starts it again."""
        control_plane = next(node for node in self.nodes() if node.name.endswith("-control-plane"))
        control_plane.run("sh", "-c", 'kill -KILL $(pidof "$0")', component, check=False)

    def socket(self, node: str, path: str) -> Path:
        """Return the socket's path on this host, through the root of the node's first process."""
        found = first_process(self.node(node).name)
        if found is None:
            raise TestbedError(
                f"this host does not see the processes of node {node}",
                hint="run dra-testbed as root, on the host of the container engine",
            )
        return Path(f"/proc/{found}/root{path}")


def _wait_for_kubelet(node: KindNode) -> None:
    def check() -> None:
        try:
            node.run("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/10248", timeout=10)
        except CommandFailed as nothing:
            raise NotYet(nothing.output.strip() or nothing.status) from nothing

    eventually(check, f"the kubelet of {node.name}", _KUBELET, longest_pause=0.2)


def _import(node: KindNode, archives: Sequence[Path], names: Sequence[str]) -> None:
    lacking = images.archives_to_load(archives, node.run(*_CTR, "list").stdout)
    snapshotter = node.run("sh", "-c", _SNAPSHOTTER).stdout.strip() or "overlayfs"
    for archive, name in zip(archives, names, strict=True):
        if archive in lacking:
            path = f"{SHARED}/{name}"
            node.run(*_CTR, "import", "--digests", "--snapshotter", snapshotter, path, timeout=300)


@contextlib.contextmanager
def _shared_archives(archives: Sequence[Path], shared: Path) -> Iterator[list[str]]:
    """Link or copy the archives into the folder that is mounted into nodes; yield their names there, and remove them at the end."""
    names = [f"{number}-{archive.name}" for number, archive in enumerate(archives)]
    targets = [shared / name for name in names]
    try:
        for archive, target in zip(archives, targets, strict=True):
            target.unlink(missing_ok=True)
            try:
                target.hardlink_to(archive)
            except OSError:
                shutil.copyfile(archive, target)
        yield names
    finally:
        for target in targets:
            target.unlink(missing_ok=True)
