"""The local provider: makes clusters, attaches to them, removes them, and sweeps what killed runs left."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path, PurePath
from typing import TypeVar

from testbed import process, state_files
from testbed.progress import Progress
from testbed.providers import cgroup_freezer, inotify
from testbed.providers.base import Artifacts, ClusterFinder, ClusterMaker, ClusterSpec, HostProblem
from testbed.providers.local import cgroups, creation, host, network, orphans
from testbed.providers.local.cluster import LocalCluster
from testbed.providers.local.layout import ClusterRecord, Layout
from testbed.providers.local.services import netfilter, nft
from testbed.providers.process_marks import marked_processes
from testbed.state_files import Content, DamagedState, typed

T = TypeVar("T")

_PROGRAMS = (
    "etcd", "kube-apiserver", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "cni-ptp", "cni-loopback", "cni-host-local",
    "coredns", "kubelet", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubectl",
)  # fmt: skip


class LocalProvider:
    """A ClusterMaker."""

    def dispatch(self, *, maker: Callable[[ClusterMaker], T], finder: Callable[[ClusterFinder], T]) -> T:  # noqa: ARG002 - required by the protocol
        """Return `maker(self)`: this provider makes its clusters."""
        return maker(self)

    def node_facilities(self) -> Collection[str]:
        """Return nri: containerd has it on; and host-files: nodes have the files of this host. Containers see no devices of it."""
        return ("nri", "host-files")

    def programs(self) -> Sequence[str]:
        """Return the components of a cluster; kubectl is only for users and comes last."""
        return _PROGRAMS

    def preflight(self, spec: ClusterSpec) -> list[HostProblem]:
        """Return what will not work on this host."""
        found = host.detect()
        return found.problems() + found.remarks() + _rules(found) + _instances(spec.nodes)

    def privileged_access(self) -> str:
        """Return what a container with access to its node can do."""
        return "it can act as root on this host, because nodes share its kernel, its devices and its /sys"

    def create(
        self, name: str, spec: ClusterSpec, artifacts: Artifacts, state: Path, progress: Progress
    ) -> LocalCluster:
        """Make the cluster in the folder `state`."""
        _save(state, spec, artifacts)
        return creation.create(name, spec, artifacts, state, progress)

    def attach(self, name: str, state: Path) -> LocalCluster | None:
        """Return the cluster that was made in this folder, if one was. Raise DamagedState if its files are damaged."""
        layout, record, saved = Layout(state), ClusterRecord.load(state / "cluster.json"), _load(state)
        if record is None or saved is None:
            return None
        settings = creation.settings_of(name, *saved, record, layout)
        return LocalCluster(name, layout, settings, record.nodes)

    def delete(self, name: str, state: Path) -> None:
        """Kill every process of the cluster, then remove its link, its cgroups and its files, as far as they still exist."""
        marked = [pid for pid, folder in marked_processes().items() if folder == state]
        used = {path for pid in marked for path in cgroups.of_process(pid.pid) if cgroups.testbed_of(path) == name}
        with contextlib.suppress(DamagedState):  # the processes say which cgroups are the cluster's, too
            record = ClusterRecord.load(state / "cluster.json")
            used |= {cgroups.cgroup_of(name, record.octet)} if record else set()
        for path in used:
            cgroup_freezer.thaw(PurePath(path).name)
        process.kill_all(marked)
        network.remove_links_of(state)
        for path in used:
            cgroups.remove(path)
        if state.exists():
            shutil.rmtree(state)

    def sweep(self, in_use: Callable[[Path], bool]) -> list[str]:
        """Kill marked processes that belong to no testbed, and remove their links and cgroups."""
        removed: list[str] = []
        while found := orphans.find(in_use):  # repeated, because a program may have been starting meanwhile
            orphans.remove(found)
            removed += found.describe()
        return removed


def _rules(found: host.Host) -> list[HostProblem]:
    """Return why kube-proxy cannot work. Without nft that is not known yet where `up` unpacks it."""
    known = nft.available()
    if not (found.linux and found.root) or (known is None and nft.can_unpack()):
        return []
    return netfilter.lacking(found.kernel, known)


def _instances(nodes: int) -> list[HostProblem]:
    least = inotify.SEEN_ON_CONTROL_PLANE + inotify.SEEN_ON_A_NODE * nodes
    return inotify.shortage(least, least + nodes)  # pods need some more


def _save(state: Path, spec: ClusterSpec, artifacts: Artifacts) -> None:
    content = {
        "kubernetes": spec.kubernetes,
        "nodes": spec.nodes,
        "feature_gates": dict(spec.feature_gates),
        "gates_unknown_to_scheduler": sorted(spec.gates_unknown_to_scheduler),
        "runtime_config": dict(spec.runtime_config),
        "programs": {name: str(path) for name, path in artifacts.programs.items()},
        "images": [str(path) for path in artifacts.images],
        "sandbox_image": artifacts.sandbox_image,
    }
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    state_files.write(state / "spec.json", content)


def _load(state: Path) -> tuple[ClusterSpec, Artifacts] | None:
    return state_files.read(state / "spec.json", _parsed)


def _parsed(content: Content) -> tuple[ClusterSpec, Artifacts]:
    programs = {name: Path(path) for name, path in state_files.string_map(content, "programs").items()}
    images = [Path(path) for path in state_files.strings(content, "images")]
    gates = typed(content, "feature_gates", dict)
    spec = ClusterSpec(
        typed(content, "kubernetes", str),
        typed(content, "nodes", int),
        {gate: typed(gates, gate, bool) for gate in gates},
        frozenset(state_files.strings(content, "gates_unknown_to_scheduler")),
        state_files.string_map(content, "runtime_config"),
    )
    return spec, Artifacts(programs, images, typed(content, "sandbox_image", str))
