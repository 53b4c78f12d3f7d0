"""The local provider itself: makes a cluster, finds it again, removes it and what is left of it after any crash."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

from testbed import process
from testbed.progress import Progress
from testbed.providers import cgroup_freezer, inotify
from testbed.providers.base import ClusterSpec, Problem
from testbed.providers.local import cgroups, creation, host, network, orphans
from testbed.providers.local.cluster import LocalCluster
from testbed.providers.local.layout import Layout, Ledger
from testbed.providers.process_marks import marked_processes

_NEEDS = (
    "etcd", "kube-apiserver", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "cni-ptp", "cni-loopback", "cni-host-local",
    "kubelet", "kube-controller-manager", "kube-scheduler", "kubectl",
)  # fmt: skip


class LocalProvider:
    """Fulfils Provider."""

    def programs(self) -> Sequence[str]:
        """What a cluster of processes is made of; kubectl is only for people and comes last."""
        return _NEEDS

    def preflight(self, spec: ClusterSpec) -> list[Problem]:
        """What will not work on this host."""
        found = host.detect()
        return found.problems() + found.remarks() + _instances(spec.nodes)

    def create(self, name: str, spec: ClusterSpec, state: Path, progress: Progress) -> LocalCluster:
        """Make the cluster in the folder `state`."""
        _save_spec(state, spec)
        return creation.create(name, spec, state, progress)

    def attach(self, name: str, state: Path) -> LocalCluster | None:
        """The cluster of that name, when its folder says that there is one."""
        layout, ledger, spec = Layout(state), Ledger.load(state / "cluster.json"), _load_spec(state)
        if ledger is None or spec is None:
            return None
        facts = creation.facts_of(name, spec, ledger, layout)
        return LocalCluster(name, layout, facts, ledger.nodes)

    def delete(self, name: str, state: Path) -> None:
        """End every process of the cluster, then remove its link, its cgroups and its files. What is gone already is fine."""
        ledger = Ledger.load(state / "cluster.json")
        if ledger:
            cgroup_freezer.thaw(PurePath(cgroups.cgroup_of(name, ledger.octet)).name)
        process.kill_all(pid for pid, folder in marked_processes().items() if folder == state)
        network.remove_links_of(state)
        if ledger:
            cgroups.remove(cgroups.cgroup_of(name, ledger.octet))
        if state.exists():
            shutil.rmtree(state)

    def sweep(self, in_use: Callable[[Path], bool]) -> list[str]:
        """End marked processes without a testbed, remove cgroups without processes."""
        removed: list[str] = []
        while found := orphans.find(in_use):  # again: a program may have been starting while we looked
            orphans.remove(found)
            removed += found.describe()
        return removed


def _instances(nodes: int) -> list[Problem]:
    least = inotify.SEEN_ON_CONTROL_PLANE + inotify.SEEN_ON_A_NODE * nodes
    return inotify.shortage(least, least + nodes)  # what pods want comes on top


def _save_spec(state: Path, spec: ClusterSpec) -> None:
    content = {
        "kubernetes": spec.kubernetes,
        "nodes": spec.nodes,
        "feature_gates": dict(spec.feature_gates),
        "gates_unknown_to_scheduler": sorted(spec.gates_unknown_to_scheduler),
        "runtime_config": dict(spec.runtime_config),
        "programs": {name: str(path) for name, path in spec.programs.items()},
        "images": [str(path) for path in spec.images],
        "sandbox_image": spec.sandbox_image,
    }
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = state / "spec.tmp"
    temporary.write_text(json.dumps(content, indent=1))
    temporary.replace(state / "spec.json")


def _load_spec(state: Path) -> ClusterSpec | None:
    try:
        content = json.loads((state / "spec.json").read_text())
    except FileNotFoundError:
        return None
    programs = {name: Path(path) for name, path in content.pop("programs").items()}
    unknown = frozenset(content.pop("gates_unknown_to_scheduler"))
    images = [Path(path) for path in content.pop("images")]
    return ClusterSpec(**content, programs=programs, images=images, gates_unknown_to_scheduler=unknown)
