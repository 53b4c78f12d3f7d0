"""What `up` does with an existing cluster: inspect it, connect to it, install the driver; and how `down` removes the objects again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.bringup import removal
from testbed.bringup.created_kinds import created_kinds
from testbed.bringup.resolved_config import ResolvedConfig
from testbed.bringup.state import Record
from testbed.bringup.steps import inspection
from testbed.bringup.steps.plan import Plan, describe_driver, describe_objects, objects_of
from testbed.bringup.steps.procedure import (
    Context,
    ExpectedCluster,
    Step,
    disk_space,
    install_drivers,
    keep_nodes,
    refuse_fatal,
)
from testbed.errors import ApiError, TestbedError, UsageError
from testbed.kube import features, permissions
from testbed.kube.client import Kube
from testbed.models.config import TestbedConfig
from testbed.progress import Progress
from testbed.providers.base import REPAIRS, Capability, ClusterFinder, FoundCluster, HostProblem
from testbed.state_files import DamagedState


@dataclass(frozen=True)
class FoundClusterProcedure:
    """The procedure for a provider that finds its clusters."""

    provider: ClusterFinder

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of `up`, in order."""
        return (self.connect, self.install_driver)

    def expected_cluster(self, config: TestbedConfig) -> ExpectedCluster:  # noqa: ARG002 - required by the protocol
        """Return that nothing is known yet: the cluster has its version and nodes, whatever the configuration says."""
        return ExpectedCluster()

    def problems(self, resolved: ResolvedConfig) -> Sequence[HostProblem]:
        """Return what is wrong in the cluster but can be tolerated. Raise an error if the cluster cannot be used."""
        return self._find(resolved).problems

    def check(self, resolved: ResolvedConfig, folder: Path, progress: Progress) -> None:
        """Raise an error if the cluster cannot be used, or the driver cannot be installed in it; report what may fail as notes."""
        found = self._find(resolved)
        problems = [*found.problems, *disk_space(folder, nodes=0)]
        refuse_fatal(problems)
        remarks = inspection.check_before_install(found, resolved)
        for each in [*(f"{problem.what}: {problem.cure}" for problem in problems), *remarks]:
            progress.say(f"note: {each}")

    def plan(self, resolved: ResolvedConfig) -> tuple[Plan, FoundCluster | None]:
        """Return what `up` would create in the cluster, and the cluster. Raise the errors that `up` would raise."""
        found = self._find(resolved)
        remarks = inspection.check_before_install(found, resolved)
        able = found.cluster.capabilities
        installs = Capability.MAKE_OBJECTS in able
        objects = objects_of(resolved) if installs else []
        needed = [
            *self.provider.required_permissions(resolved.spec.options),
            *inspection.install_permissions(found.kube, objects),
            *(inspection.pull_secret_permissions(resolved.drivers) if installs else ()),
        ]
        served = features.read(found.kube)
        gates = (
            None if served.gates is None else sorted(gate for gate, on in served.gates.items() if on and _is_dra(gate))
        )
        plan = Plan(
            self.provider.describe(resolved.spec),
            served.version,
            len(found.cluster.nodes()),
            describe_driver(resolved, installs=installs),
            describe_objects(objects),
            tuple(permissions.summarize(needed)),
            tuple(f"what needs {each}" for each in sorted(set(Capability) - REPAIRS - able)),
            None if gates is None else tuple(gates),
            tuple(remarks),
        )
        return plan, found

    def remove_objects(self, record: Record, folder: Path, progress: Progress) -> None:
        """Remove all objects that the testbed created in the cluster, also those of an `up` that did not finish."""
        try:
            cluster = self.provider.attach(record.name, folder)
            if cluster is None or Capability.MAKE_OBJECTS not in cluster.capabilities:
                return
            kube = Kube(cluster.kubeconfig)
        except (DamagedState, UsageError) as damage:  # UsageError: the copy of the kubeconfig is damaged
            progress.say(
                f"note: the objects of testbed {record.name} are not removed from its cluster: {damage.what}. "
                "dra-testbed sweep --kubeconfig FILE removes them"
            )
            return
        kinds = created_kinds(self.provider, record.config)
        try:
            removal.remove_all(kube, record.owner, kinds, record.drivers, progress)
        except ApiError as lost:
            raise TestbedError(
                f"the objects of testbed {record.name} could not be removed from its cluster: {lost}",
                hint=f"if the cluster no longer exists: dra-testbed down --name {record.name} --forget",
            ) from lost

    def connect(self, context: Context) -> None:
        """Let the provider record how to reach the cluster."""
        resolved = context.resolved
        name, folder = resolved.config.name, context.folder
        context.made = self.provider.connect(name, resolved.spec, context.owner, folder, context.progress)

    def install_driver(self, context: Context) -> None:
        """Install the driver under test and its companions, if there is one and objects may be created."""
        resolved = context.resolved
        if resolved.driver_file is None:
            return
        if Capability.MAKE_OBJECTS not in context.cluster.capabilities:
            keep_nodes(context)
            name = resolved.driver_file.driver
            context.progress.say(
                f"driver {name} is judged as installed there: --allow read-only permits no installation"
            )
            return
        context.driver_image = inspection.driver_image(resolved)
        install_drivers(context)

    def _find(self, resolved: ResolvedConfig) -> FoundCluster:
        return self.provider.find(resolved.config.name, resolved.spec)


def _is_dra(gate: str) -> bool:
    return gate.startswith(("DRA", "DynamicResource"))
