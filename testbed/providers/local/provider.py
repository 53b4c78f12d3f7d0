"""The local provider: makes clusters, attaches to them, removes them, and sweeps what killed runs left."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import TypeVar

from testbed import process
from testbed.progress import Progress
from testbed.providers import cgroup_freezer, inotify
from testbed.providers.base import Artifacts, ClusterFinder, ClusterMaker, ClusterSpec, Problem
from testbed.providers.local import cgroups, creation, host, network, orphans
from testbed.providers.local.cluster import LocalCluster
from testbed.providers.local.layout import ClusterRecord, Layout
from testbed.providers.process_marks import marked_processes

T = TypeVar("T")

_PROGRAMS = (
    "etcd", "kube-apiserver", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "cni-ptp", "cni-loopback", "cni-host-local",
    "kubelet", "kube-controller-manager", "kube-scheduler", "kubectl",
)  # fmt: skip


class LocalProvider:
    """A ClusterMaker."""

    def dispatch(self, *, maker: Callable[[ClusterMaker], T], finder: Callable[[ClusterFinder], T]) -> T:  # noqa: ARG002 - required by the protocol
        """Return `maker(self)`: this provider makes its clusters."""
        return maker(self)

    def programs(self) -> Sequence[str]:
        """Return the components of a cluster; kubectl is only for users and comes last."""
        return _PROGRAMS

    def preflight(self, spec: ClusterSpec) -> list[Problem]:
        """Return what will not work on this host."""
        found = host.detect()
        return found.problems() + found.remarks() + _instances(spec.nodes)

    def create(
        self, name: str, spec: ClusterSpec, artifacts: Artifacts, state: Path, progress: Progress
    ) -> LocalCluster:
        """Make the cluster in the folder `state`."""
        _save(state, spec, artifacts)
        return creation.create(name, spec, artifacts, state, progress)

    def attach(self, name: str, state: Path) -> LocalCluster | None:
        """Return the cluster that was made in this folder, if one was."""
        layout, record, saved = Layout(state), ClusterRecord.load(state / "cluster.json"), _load(state)
        if record is None or saved is None:
            return None
        settings = creation.settings_of(name, *saved, record, layout)
        return LocalCluster(name, layout, settings, record.nodes)

    def delete(self, name: str, state: Path) -> None:
        """Kill every process of the cluster, then remove its link, its cgroups and its files, as far as they still exist."""
        record = ClusterRecord.load(state / "cluster.json")
        if record:
            cgroup_freezer.thaw(PurePath(cgroups.cgroup_of(name, record.octet)).name)
        process.kill_all(pid for pid, folder in marked_processes().items() if folder == state)
        network.remove_links_of(state)
        if record:
            cgroups.remove(cgroups.cgroup_of(name, record.octet))
        if state.exists():
            shutil.rmtree(state)

    def sweep(self, in_use: Callable[[Path], bool]) -> list[str]:
        """Kill marked processes that belong to no testbed, and remove their links and cgroups."""
        removed: list[str] = []
        while found := orphans.find(in_use):  # repeated, because a program may have been starting meanwhile
            orphans.remove(found)
            removed += found.describe()
        return removed


def _instances(nodes: int) -> list[Problem]:
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
    temporary = state / "spec.tmp"
    temporary.write_text(json.dumps(content, indent=1))
    temporary.replace(state / "spec.json")


def _load(state: Path) -> tuple[ClusterSpec, Artifacts] | None:
    try:
        content = json.loads((state / "spec.json").read_text())
    except FileNotFoundError:
        return None
    programs = {name: Path(path) for name, path in content.pop("programs").items()}
    unknown = frozenset(content.pop("gates_unknown_to_scheduler"))
    images = [Path(path) for path in content.pop("images")]
    artifacts = Artifacts(programs, images, content.pop("sandbox_image"))
    return ClusterSpec(**content, gates_unknown_to_scheduler=unknown), artifacts
