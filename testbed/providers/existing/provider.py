"""The provider of existing clusters: inspects a cluster, records how to reach it, and forgets it again. It makes no cluster."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from testbed.errors import TestbedError, UsageError
from testbed.kube import connection, kubeconfig
from testbed.kube.client import Kube, Object
from testbed.kube.features import DRA, Features
from testbed.kube.kubeconfig import Access
from testbed.kube.nodes import is_ready
from testbed.kube.ownership import Owner
from testbed.kube.permissions import Permission
from testbed.models.sections import Allow, ExistingSection
from testbed.progress import Progress
from testbed.providers.base import Capability, ClusterFinder, ClusterMaker, ClusterSpec, FoundCluster, HostProblem
from testbed.providers.existing import required_permissions
from testbed.providers.existing.cluster import ExistingCluster, FoundClusterRecord
from testbed.providers.existing.node_trial import try_out

T = TypeVar("T")

_NEEDED = "v1"  # the version of resource.k8s.io that the suites are written in
# Settings of a cluster that is made; an existing one has them already.
_ONLY_FOR_NEW = ("kubernetes", "kubelet", "nodes", "feature_gates", "runtime_config", "binaries_from")
_FLAGS = {"feature_gates": "--feature-gate"}
_ON_NODES = frozenset({Capability.RUN_ON_NODE, Capability.RESTART_KUBELET, Capability.RESTART_RUNTIME})
_ON_DRIVER = frozenset({Capability.MAKE_OBJECTS, Capability.CHANGE_DRIVER, Capability.ACT_AS_DRIVER})
_BY_LEVEL = {
    Allow.READ_ONLY: frozenset[Capability](),
    Allow.WORKLOADS: frozenset({Capability.MAKE_OBJECTS}),
    Allow.DRIVER: _ON_DRIVER,
    Allow.RESTART: _ON_DRIVER | _ON_NODES,
}


class ExistingProvider:
    """A ClusterFinder."""

    def dispatch(self, *, maker: Callable[[ClusterMaker], T], finder: Callable[[ClusterFinder], T]) -> T:  # noqa: ARG002 - required by the protocol
        """Return `finder(self)`: this provider finds its clusters."""
        return finder(self)

    def node_facilities(self) -> Collection[str]:
        """Return everything: only the user knows the nodes."""
        return ("nri", "host-devices")

    def find(self, name: str, spec: ClusterSpec) -> FoundCluster:
        """Connect to the cluster, and check that it serves DRA, has nodes, and grants the permissions of the --allow level."""
        kube, record, nodes = _inspect(spec, _access(spec))
        cure = "the driver is still expected there, unless its driver file selects other nodes"
        not_ready = [str(each["metadata"]["name"]) for each in nodes if not is_ready(each)]
        problems = [HostProblem(f"node {each} is not ready", cure, fatal=False) for each in not_ready]
        return FoundCluster(ExistingCluster(name, Path(), record, kube), kube, problems)

    def describe(self, spec: ClusterSpec) -> str:
        """Return the cluster's address and context, and the --allow level."""
        return f"{_access(spec)}, --allow {_section(spec.options).allow}"

    def required_permissions(self, options: object) -> Collection[Permission]:
        """Return the permissions of the --allow level."""
        return required_permissions.of_level(Allow(_section(options).allow))

    def connect(self, name: str, spec: ClusterSpec, owner: Owner, state: Path, progress: Progress) -> ExistingCluster:
        """Record how to reach the cluster. At the level `restart`, test what its nodes really allow."""
        with progress.step("cluster inspected") as step:
            cluster = _record(name, spec, owner, state)
            step.note(f"Kubernetes {cluster.record.kubernetes}, {len(cluster.nodes())} nodes")
        if cluster.record.allow is not Allow.RESTART:
            return cluster
        with progress.step("access to the nodes tested") as step:
            expected = spec.driver_nodes(cluster.kube) if spec.driver_nodes else ()
            found = try_out(cluster.on_nodes(Capability.RUN_ON_NODE), cluster.kube.list("v1", "Node"), expected)
            step.note(found.why_not or "programs run on them")
        for each in found.not_counted:
            progress.say(f"note: not counted: {each}")
        record = replace(cluster.record, capabilities=(cluster.record.capabilities - _ON_NODES) | found.able)
        record.save(state)
        return replace(cluster, record=record)

    def attach(self, name: str, state: Path) -> ExistingCluster | None:
        """Return the cluster that is recorded in this folder, if one is."""
        record = FoundClusterRecord.load(state)
        return ExistingCluster(name, state, record) if record else None

    def delete(self, name: str, state: Path) -> None:  # noqa: ARG002 - required by the protocol
        """Forget how to reach the cluster. `down` has removed the objects in it before."""
        if state.exists():
            shutil.rmtree(state)

    def sweep(self, in_use: Callable[[Path], bool]) -> list[str]:  # noqa: ARG002 - required by the protocol
        """Return an empty list: nothing of an existing cluster runs on this host."""
        return []


def _access(spec: ClusterSpec) -> Access:
    _refuse_settings_of_new_clusters(spec)
    section = _section(spec.options)
    return kubeconfig.load_access(section.kubeconfig, section.context)


def _inspect(
    spec: ClusterSpec, access: Access, owner: Owner | None = None
) -> tuple[Kube, FoundClusterRecord, list[Object]]:
    kube, found = connection.connect(access)
    _refuse_without_dra(access, found)
    level = Allow(_section(spec.options).allow)
    required_permissions.check(kube, level, str(access))
    nodes = kube.list("v1", "Node")
    if not nodes:
        raise TestbedError(f"{access} has no nodes", hint="add a node: neither a driver nor a pod can run without one")
    able, reboot = _BY_LEVEL[level], _section(spec.options).reboot_command or ""
    if reboot:
        _check_reboot_command(reboot, level)
        able |= {Capability.REBOOT_NODE}
    return kube, FoundClusterRecord(level, found.version, able, owner, spec.workload_image, reboot), nodes


def _record(name: str, spec: ClusterSpec, owner: Owner, state: Path) -> ExistingCluster:
    access = _access(spec)
    _, record, _ = _inspect(spec, access, owner)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    access.write(state / "kubeconfig")
    record.save(state)
    return ExistingCluster(name, state, record)


def _refuse_without_dra(access: Access, found: Features) -> None:
    if _NEEDED in found.resource_versions:
        return
    served = ", ".join(found.resource_versions)
    what = f"serves {DRA} only as {served}" if served else f"does not serve {DRA}"
    raise TestbedError(
        f"no driver can be judged on {access}: its Kubernetes {found.version} {what}",
        hint=f"upgrade to Kubernetes 1.34 or newer, which serves {DRA}/{_NEEDED} by default",
    )


def _check_reboot_command(command: str, level: Allow) -> None:
    """Raise UsageError if the command cannot be started, or must not be at this level."""
    if level is not Allow.RESTART:
        raise UsageError(
            f"--reboot-command is not used with --allow {level}", hint="add --allow restart, or omit --reboot-command"
        )
    try:
        program = [*shlex.split(command), ""][0]
    except ValueError as wrong:
        raise UsageError(f"--reboot-command {command!r} is not a command line: {wrong}") from wrong
    if not shutil.which(program):
        raise UsageError(f"--reboot-command: there is no program {program!r} on this host")


def _section(options: object) -> ExistingSection:
    return options if isinstance(options, ExistingSection) else ExistingSection()


def _refuse_settings_of_new_clusters(spec: ClusterSpec) -> None:
    given = [_FLAGS.get(name, f"--{name.replace('_', '-')}") for name in _ONLY_FOR_NEW if name in spec.given]
    if given:
        raise UsageError(
            f"{', '.join(given)} cannot be used with an existing cluster",
            hint="omit it, or use --provider local or kind, which make a new cluster",
        )
