"""A local cluster: its nodes, its logs, and restarts of its components. `creation.py` makes it; the provider attaches to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePath

from testbed import process
from testbed.copying import copy_file, copy_tree
from testbed.errors import TestbedError, UsageError, did_you_mean
from testbed.process import Completed, ProcessId
from testbed.providers import cgroup_freezer
from testbed.providers.base import STORED_ABOUT_CLAIMS, Capability, Component
from testbed.providers.local import cgroups, components
from testbed.providers.local.components import ClusterSettings
from testbed.providers.local.layout import Layout, load_process_id, load_process_ids, save_process_id
from testbed.providers.local.namespaces import Machine, boot
from testbed.providers.local.network import connect_node
from testbed.providers.local.readiness import api_server_ready, kubelet_serves, socket_answers
from testbed.providers.local.services import proxy
from testbed.waiting import Budget

_IMPORT = Budget("image import", 120, "60 MB take a second, and minutes on an emulated machine")
_COPY = 'mkdir -p "${1%/*}/" && cat >"$1.new" && chmod "$2" "$1.new" && mv -f "$1.new" "$1"'
_CTR = ("ctr", "--address", components.CONTAINERD_SOCKET, "--namespace", "k8s.io")


@dataclass(frozen=True)
class LocalNode:
    """A node of a local cluster."""

    name: str
    index: int
    machine: Machine

    def run(self, *argv: str, check: bool = True, timeout: float = 60) -> Completed:
        """Run a program on the node and return its output."""
        return self.machine.run(*argv, check=check, timeout=timeout)


@dataclass(frozen=True)
class LocalCluster:
    """A Cluster with every capability."""

    name: str
    layout: Layout
    settings: ClusterSettings
    node_names: tuple[str, ...]

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; only its owner can read it."""
        return self.layout.pki / "admin.kubeconfig"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """All capabilities, because everything in the cluster is our own process."""
        return frozenset(Capability)

    def nodes(self) -> Sequence[LocalNode]:
        """Return all nodes, sorted by name."""
        return [self.node(name) for name in self.node_names]

    def node(self, name: str) -> LocalNode:
        """Return the node of that name. Raise UsageError if there is none."""
        if name not in self.node_names:
            raise UsageError(f"testbed {self.name} has no node {name}", hint=did_you_mean(name, self.node_names))
        return LocalNode(name, self.node_names.index(name) + 1, self.machine(name))

    def machine(self, name: str = "control-plane") -> Machine:
        """Return the machine of a node, or of the control plane."""
        folder = self.layout.control_plane if name == "control-plane" else self.layout.node(name)
        init = load_process_id(folder, "init")
        if init is None:
            raise TestbedError(
                f"{name} of testbed {self.name} has not been started yet",
                hint=f"dra-testbed down --name {self.name}, then up",
            )
        return Machine(self.layout.folder, folder, init, own_root=name != "control-plane")

    def collect_logs(self, into: Path) -> None:
        """Copy the logs of all components and pods into a folder."""
        copy_tree(self.layout.logs, ".", into)
        for boot_log in (
            self.layout.control_plane / "boot.log",
            *(self.layout.node(n) / "boot.log" for n in self.node_names),
        ):
            copy_file(boot_log, into / f"{boot_log.parent.name}-boot.log")
        for name in self.node_names:
            # A container can replace any part of this path with a link to a file of the host.
            copy_tree(self.layout.node(name), "disk/var/log/pods", into / name / "pods")

    def load_image(self, archive: Path) -> None:
        """Import an OCI archive into all nodes in parallel."""
        self._on_all(lambda node: self.load_image_on(node, archive))

    def load_image_on(self, node: LocalNode, archive: Path) -> None:
        """Import an OCI archive into one node. The node gets only the content, so that it cannot change the cached file."""
        importing = (*_CTR, "images", "import", "--local", "--snapshotter", components.snapshotter(self.settings), "-")
        with archive.open("rb") as content:
            node.machine.run(*importing, timeout=_IMPORT.effective_seconds, stdin=content.fileno())

    def stop_kubelet(self, node: str) -> None:
        """Stop the kubelet; its pods keep running."""
        self._stop(node, "kubelet", grace=5)

    def start_kubelet(self, node: str) -> None:
        """Start the kubelet and wait until it serves."""
        self.launch_kubelet(node)
        log = self.layout.log(f"{node}-kubelet")
        kubelet_serves(self.settings.addresses.node(self.node(node).index), self.process_of(node, "kubelet"), log)

    def launch_kubelet(self, node: str) -> None:
        """Start the kubelet without waiting for it."""
        self._refuse_if_running(node, "kubelet")
        target = self.node(node)
        argv = components.kubelet(self.settings, node, target.index)
        save_process_id(
            target.machine.folder, "kubelet", target.machine.start(argv, log=self.layout.log(f"{node}-kubelet"))
        )

    def launch_proxy(self, node: str) -> None:
        """Start kube-proxy without waiting for it."""
        machine = self.node(node).machine
        save_process_id(
            machine.folder, "kube-proxy", machine.start(proxy.command(), log=self.layout.log(f"{node}-kube-proxy"))
        )

    def stop_runtime(self, node: str) -> None:
        """Stop containerd; containers keep running under their shims."""
        self._stop(node, "containerd", grace=5)

    def start_runtime(self, node: str) -> None:
        """Start containerd and wait until it accepts connections."""
        self._refuse_if_running(node, "containerd")
        target = self.node(node)
        log = self.layout.log(f"{node}-containerd")
        started = target.machine.start(
            components.containerd(), log=log, env=components.containerd_environment(self.settings)
        )
        save_process_id(target.machine.folder, "containerd", started)
        socket_answers(target.machine, started, components.CONTAINERD_SOCKET, log)

    def stop_node(self, node: str) -> None:
        """Kill all processes of a node at once, as a power failure does."""
        cgroup_freezer.thaw(PurePath(cgroups.cgroup_of(self.name, self.settings.addresses.octet)).name)
        process.kill(self.node(node).machine.init)
        # Otherwise the kubelet would spend seconds on each cgroup of a lost container. After a power failure there are none either.
        cgroups.remove(self._cgroup(node))

    def start_node(self, node: str) -> None:
        """Start a node that was stopped, with the same disks and an empty /run, and all its components."""
        self._refuse_if_running(node, "init")
        target = self.node(node)
        cgroups.make(self._cgroup(node))
        self.boot_node(node)
        connect_node(self.settings.addresses, self.machine(), self.machine(node), target.index, len(self.node_names))
        self.start_runtime(node)
        if self.process_of(node, "kube-proxy"):  # not on a host without netfilter
            self.launch_proxy(node)
        self.start_kubelet(node)

    def reboot(self, node: str) -> None:
        """Reboot the node: all processes end, the content of tmpfs is lost, and the node starts again."""
        self.stop_node(node)
        self.start_node(node)

    def reset_node(self, node: str) -> None:
        """Reboot the node without what its kubelet and its drivers stored about claims and devices, on disk too."""
        self.stop_kubelet(node)
        self.node(node).run("sh", "-c", f"rm -rf {' '.join(STORED_ABOUT_CLAIMS)}")
        self.reboot(node)

    def boot_node(self, name: str) -> Machine:
        """Start a node's first process, without its components."""
        folder = self.layout.node(name)
        script = Path(__file__).with_name("node.sh")
        how = "overlay" if self.settings.use_overlay else "copy"
        machine = boot(self.layout.folder, folder, ["sh", str(script), str(folder), name, how], own_root=True)
        save_process_id(folder, "init", machine.init)
        return machine

    def restart_api_server(self) -> None:
        """Restart the API server and wait until it is ready."""
        self._stop("control-plane", "kube-apiserver", grace=2)  # with open watches it would not end by itself
        self.start_component("kube-apiserver", components.api_server(self.settings))
        api_server_ready(self.layout, self.settings.addresses, self.process_of("control-plane", "kube-apiserver"))

    def restart_control_plane(self, component: str) -> None:
        """Restart etcd, kube-scheduler or kube-controller-manager, also one that does not answer."""
        self._stop("control-plane", component, grace=2)
        self.start_component(component, components.CONTROL_PLANE[component](self.settings))

    def start_component(self, name: str, argv: Sequence[str]) -> None:
        """Start a component of the control plane."""
        started = self.machine().start(argv, log=self.layout.log(name))
        save_process_id(self.layout.control_plane, name, started)

    def start_process(self, node: str, argv: Sequence[str], *, log: Path, env: Mapping[str, str]) -> ProcessId:
        """Start a long-running program on a node, without an image; it ends with the node."""
        return self.node(node).machine.start(argv, log=log, env=env)

    def copy_to_node(self, node: str, source: Path, target: str) -> None:
        """Copy a file of this host to a path on a node. It keeps its permissions."""
        with source.open("rb") as content:
            mode = f"{source.stat().st_mode & 0o777:o}"
            self.node(node).machine.run("sh", "-c", _COPY, "sh", target, mode, stdin=content.fileno())

    def socket(self, node: str, path: str) -> Path:
        """Return the socket's path on this host, through the root of the node's first process."""
        return Path(f"/proc/{self.node(node).machine.checked_pid()}/root{path}")

    def process_of(self, machine: str, component: str) -> ProcessId | None:
        """Return the process of a component that was started last; None if it never was."""
        folder = self.layout.control_plane if machine == "control-plane" else self.layout.node(machine)
        return load_process_id(folder, component)

    def components(self) -> Sequence[Component]:
        """Return every component that should run, named MACHINE/COMPONENT."""
        machines = {
            "control-plane": self.layout.control_plane,
            **{n: self.layout.node(n) for n in self.node_names},
        }
        return [
            Component(f"{name}/{part}", pid, process.alive(pid) and not process.is_stopped(pid))
            for name, folder in machines.items()
            for part, pid in load_process_ids(folder).items()
        ]

    def _cgroup(self, node: str) -> str:
        return cgroups.cgroup_of(self.name, self.settings.addresses.octet, node)

    def _refuse_if_running(self, machine: str, component: str) -> None:
        running = self.process_of(machine, component)
        if running and process.alive(running):
            raise UsageError(f"{component} of {machine} is already running", hint="stop it first")

    def _stop(self, machine: str, component: str, *, grace: float) -> None:
        running = self.process_of(machine, component)
        if running:
            process.kill(running, grace=grace)

    def _on_all(self, work: Callable[[LocalNode], None]) -> None:
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(work, self.nodes()))
