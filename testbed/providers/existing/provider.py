"""The provider itself: looks at a cluster that is there, keeps a way to reach it, and forgets it again. It makes and ends no cluster."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from testbed.errors import TestbedError, UsageError
from testbed.kube import kubeconfig, reach
from testbed.kube.client import Kube
from testbed.kube.features import DRA, Features
from testbed.kube.kubeconfig import Access
from testbed.kube.nodes import is_ready
from testbed.kube.rights import Right
from testbed.models.sections import Allow, ExistingSection
from testbed.progress import Progress
from testbed.providers.base import Capability, ClusterSpec, Problem
from testbed.providers.existing import required_rights
from testbed.providers.existing.cluster import ExistingCluster, Facts
from testbed.providers.existing.node_trial import try_out

_NEEDED = "v1"  # of resource.k8s.io: suites are written in it
# What can be asked of a cluster that is made, and not of one that is there.
_NOT_ASKED = ("kubernetes", "kubelet", "nodes", "feature_gates", "runtime_config", "binaries_from")
_FLAGS = {"feature_gates": "--feature-gate"}
_ON_NODES = frozenset({Capability.RUN_ON_NODE, Capability.RESTART_KUBELET, Capability.RESTART_RUNTIME})
_BY_LEVEL = {
    Allow.READ_ONLY: frozenset[Capability](),
    Allow.WORKLOADS: frozenset({Capability.MAKE_OBJECTS}),
    Allow.RESTART: frozenset({Capability.MAKE_OBJECTS}) | _ON_NODES,
}


class ExistingProvider:
    """Fulfils Provider and FindsClusters."""

    def programs(self) -> Sequence[str]:
        """None: everything runs already."""
        return ()

    def preflight(self, spec: ClusterSpec) -> list[Problem]:
        """What is not as it should be in the cluster, but can be lived with. What cannot is an error of `find`."""
        _, kube = self.find(spec)
        away = [each["metadata"]["name"] for each in kube.list("v1", "Node") if not is_ready(each)]
        cure = "a driver is expected there all the same, unless its driver file selects other nodes"
        return [Problem(f"node {name} is not ready", cure, fatal=False) for name in away]

    def find(self, spec: ClusterSpec) -> tuple[ExistingCluster, Kube]:
        """The cluster, only looked at: it answers, serves what is needed, and lets us do what the level says."""
        kube, facts = _look(spec, _access(spec))
        return ExistingCluster(spec.owner.testbed if spec.owner else "", Path(), facts, kube), kube

    def describe(self, spec: ClusterSpec) -> str:
        """Which cluster is meant, in a few words."""
        return f"{_access(spec)}, --allow {_section(spec).allow}"

    def needs(self, spec: ClusterSpec) -> Collection[Right]:
        """What the user must be allowed to do in it."""
        return required_rights.demanded(Allow(_section(spec).allow))

    def create(self, name: str, spec: ClusterSpec, state: Path, progress: Progress) -> ExistingCluster:
        """The same, kept. At the level `restart` it is tried out what the nodes really allow."""
        with progress.step("the cluster is looked at") as step:
            cluster = _keep(name, spec, state)
            step.note(f"Kubernetes {cluster.facts.kubernetes}, {len(cluster.nodes())} nodes")
        if cluster.facts.allow is not Allow.RESTART:
            return cluster
        with progress.step("whether programs can be run on the nodes") as step:
            expected = spec.driver_nodes(cluster.kube) if spec.driver_nodes else ()
            found = try_out(cluster.on_nodes(Capability.RUN_ON_NODE), cluster.kube.list("v1", "Node"), expected)
            step.note(found.why_not or "yes")
        for each in found.passed_over:
            progress.say(f"note: passed over: {each}")
        facts = replace(cluster.facts, capabilities=(cluster.facts.capabilities - _ON_NODES) | found.able)
        facts.save(state)
        return replace(cluster, facts=facts)

    def attach(self, name: str, state: Path) -> ExistingCluster | None:
        """The cluster of that name, when its folder knows of one."""
        facts = Facts.load(state)
        return ExistingCluster(name, state, facts) if facts else None

    def delete(self, name: str, state: Path) -> None:  # noqa: ARG002 - the protocol's
        """Forget how it is reached. What was made in it has been removed before, by whoever knows what that was."""
        if state.exists():
            shutil.rmtree(state)

    def sweep(self, in_use: Callable[[Path], bool]) -> list[str]:  # noqa: ARG002 - the protocol's
        """Nothing of it runs on this host."""
        return []


def _access(spec: ClusterSpec) -> Access:
    _refuse_what_cannot_be_asked(spec)
    section = _section(spec)
    return kubeconfig.access(section.kubeconfig, section.context)


def _look(spec: ClusterSpec, access: Access) -> tuple[Kube, Facts]:
    kube, found = reach.connect(access)
    _refuse_without_dra(access, found)
    level = Allow(_section(spec).allow)
    required_rights.check(kube, level, str(access))
    if not kube.list("v1", "Node"):
        raise TestbedError(f"{access} has no nodes", hint="no pod can run there, and no driver")
    return kube, Facts(level, found.version, _BY_LEVEL[level], spec.owner, spec.workload_image)


def _keep(name: str, spec: ClusterSpec, state: Path) -> ExistingCluster:
    access = _access(spec)
    _, facts = _look(spec, access)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    access.write(state / "kubeconfig")
    facts.save(state)
    return ExistingCluster(name, state, facts)


def _refuse_without_dra(access: Access, found: Features) -> None:
    if _NEEDED in found.resource_versions:
        return
    served = ", ".join(found.resource_versions)
    what = f"serves {DRA} only as {served}" if served else f"does not serve {DRA}"
    raise TestbedError(
        f"no driver can be judged on {access}: Kubernetes {found.version} there {what}",
        hint=f"Dynamic Resource Allocation is {DRA}/{_NEEDED}, on by default since Kubernetes 1.34",
    )


def _section(spec: ClusterSpec) -> ExistingSection:
    return spec.options if isinstance(spec.options, ExistingSection) else ExistingSection()


def _refuse_what_cannot_be_asked(spec: ClusterSpec) -> None:
    asked = [_FLAGS.get(name, f"--{name.replace('_', '-')}") for name in _NOT_ASKED if name in spec.given]
    if asked:
        raise UsageError(
            f"{', '.join(asked)} cannot be asked of a cluster that is there already",
            hint="leave it out; provider local or kind makes a cluster as you want it",
        )
