"""What `up` does with a cluster that its provider makes (local, kind): fetch, build, create, wait, install the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed import binaries, images
from testbed.binaries import Lock
from testbed.bringup.resolved_config import ResolvedConfig
from testbed.bringup.state import Record
from testbed.bringup.steps.plan import Plan, describe_driver, describe_objects, objects_of
from testbed.bringup.steps.procedure import Context, ExpectedCluster, Step, disk_space, install_drivers, refuse_fatal
from testbed.drivers.companions import image_archives, planned_changes
from testbed.drivers.host_access import host_access
from testbed.drivers.install import manifests
from testbed.drivers.manifests.process_files import copy_node_files
from testbed.errors import ApiError, TestbedError
from testbed.kube import nodes
from testbed.models.config import TestbedConfig
from testbed.models.driver.install import Install
from testbed.progress import Progress
from testbed.providers.base import Artifacts, ClusterMaker, FoundCluster, HostProblem, NodeImage
from testbed.state_files import DamagedState
from testbed.waiting import Budget, NotYet, eventually

_ACCOUNT = Budget("default service account", 30, "the controller manager starts 40 controllers before it")


@dataclass(frozen=True)
class MadeClusterProcedure:
    """The procedure for a provider that makes its clusters."""

    provider: ClusterMaker

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of `up`, in order."""
        return (
            self.fetch_programs,
            self.build_images,
            self.create_cluster,
            self.wait_until_usable,
            self.label_nodes,
            self.install_driver,
            self.check_components,
        )

    def expected_cluster(self, config: TestbedConfig) -> ExpectedCluster:
        """Return the version and the number of nodes that the cluster is made with."""
        return ExpectedCluster(config.kubernetes, config.nodes)

    def problems(self, resolved: ResolvedConfig) -> Sequence[HostProblem]:
        """Return what will not work on this host."""
        return self.provider.preflight(resolved.spec)

    def check(self, resolved: ResolvedConfig, folder: Path, progress: Progress) -> None:  # noqa: ARG002 - required by the protocol
        """Raise an error if this host cannot run the cluster."""
        refuse_fatal([*self.problems(resolved), *disk_space(folder, resolved.spec.nodes)])

    def plan(self, resolved: ResolvedConfig) -> tuple[Plan, FoundCluster | None]:
        """Return what `up` would create; there is no cluster yet."""
        config, spec = resolved.config, resolved.spec
        cluster = f"{config.name}, made by provider {config.provider}"
        objects = describe_objects(objects_of(resolved))
        driver, remarks = (
            describe_driver(resolved, installs=True),
            planned_changes(resolved.drivers, config.hardware, spec.kubernetes),
        )
        return Plan(cluster, spec.kubernetes, spec.nodes, driver, objects, remarks=tuple(remarks)), None

    def remove_objects(self, record: Record, folder: Path, progress: Progress) -> None:
        """Remove nothing: the objects disappear with their cluster. Report damaged files, without which it is removed too."""
        try:
            self.provider.attach(record.name, folder)
        except DamagedState as damage:
            progress.say(f"note: {damage.what}; the processes of testbed {record.name} are found by their marks")
        except TestbedError:  # its container engine does not answer, which removing the cluster reports
            return

    def fetch_programs(self, context: Context) -> None:
        """Fetch the upstream programs that the provider needs; the kubelet may have another version than the rest."""
        wanted, resolved = self.provider.programs(), context.resolved
        sources = resolved.config.binaries_from or None
        context.programs = binaries.ensure(resolved.lock, wanted, progress=context.progress, sources=sources)
        if resolved.kubelet_lock and "kubelet" in wanted:
            older = binaries.ensure(resolved.kubelet_lock, ["kubelet"], progress=context.progress, sources=sources)
            context.programs |= older

    def build_images(self, context: Context) -> None:
        """Build the images that are loaded into the nodes: sandbox, workload, and the driver's."""
        config = context.resolved.config
        sandbox = images.sandbox(context.progress)
        context.sandbox_image = sandbox.reference
        context.images = [sandbox.archive]
        if not config.images.workload or any(each.process for each in _installed(context)):
            context.images.append(images.workload(context.progress).archive)
        if any(each.built_in_image for each in _installed(context)):
            _add_driver_image(context)
        context.images += image_archives(context.resolved.drivers)

    def create_cluster(self, context: Context) -> None:
        """Let the provider create the cluster."""
        resolved = context.resolved
        locks = [resolved.lock, *([resolved.kubelet_lock] if resolved.kubelet_lock else [])]
        node_images = {lock.kubernetes: _node_image(lock) for lock in locks}
        artifacts = Artifacts(context.programs, tuple(context.images), context.sandbox_image, node_images)
        name, folder = resolved.config.name, context.folder
        context.made = self.provider.create(name, resolved.spec, artifacts, folder, context.progress)

    def wait_until_usable(self, context: Context) -> None:
        """Wait until nodes are Ready and pods are admitted, and check that Dynamic Resource Allocation is served."""
        with context.progress.step("nodes usable, default service account created, resource.k8s.io served"):
            logs = f"dra-testbed logs --name {context.resolved.config.name}"
            names = [node.name for node in context.cluster.nodes()]
            nodes.wait_until_usable(context.kube, names, hint=logs)
            eventually(
                lambda: _default_account(context), "the default service account", _ACCOUNT, hint=logs, longest_pause=0.1
            )
            try:
                context.kube.resource("resource.k8s.io/v1", "ResourceSlice")
            except ApiError as missing:
                raise TestbedError(
                    "the API server does not serve resource.k8s.io/v1", hint="check --runtime-config"
                ) from missing

    def label_nodes(self, context: Context) -> None:
        """Set the labels that the drivers need on all nodes that take pods."""
        wanted = {key: value for each in context.resolved.drivers for key, value in each.nodes.labels.items()}
        if wanted:
            nodes.label(context.kube, wanted)

    def install_driver(self, context: Context) -> None:
        """Install the driver under test and its companions, if there is one."""
        if context.resolved.drivers:
            self._report_host_access(context)
            self.copy_files(context)
            install_drivers(context)

    def copy_files(self, context: Context) -> None:
        """Copy the files of drivers that are processes to all nodes."""
        copy_node_files(context.cluster, context.resolved.drivers)

    def check_components(self, context: Context) -> None:
        """Raise an error if a component has exited meanwhile. No step waits for those that nodes and drivers do not need."""
        exited = [part.name for part in context.cluster.components() if not part.alive]
        if exited:
            name = context.resolved.config.name
            raise TestbedError(
                f"{', '.join(exited)} of testbed {name} exited while it came up", hint=f"dra-testbed logs --name {name}"
            )

    def _report_host_access(self, context: Context) -> None:
        """Say once what a driver of others may do on this host."""
        for each in context.resolved.drivers:
            ours = each.install is not None and each.install.built_in_image
            requested = [] if ours else host_access(manifests(each, kubernetes=context.resolved.lock.kubernetes))
            if requested:
                context.progress.say(
                    f"note: driver {each.driver} requests {', '.join(requested)}: {self.provider.privileged_access()}"
                )


def _add_driver_image(context: Context) -> None:
    context.driver_image = context.resolved.config.images.driver or ""
    if not context.driver_image:
        built = images.driver(context.progress)
        context.driver_image = built.reference
        context.images.append(built.archive)


def _installed(context: Context) -> list[Install]:
    return [each.install for each in context.resolved.drivers if each.install]


def _node_image(lock: Lock) -> NodeImage:
    def make(progress: Progress) -> tuple[str, Path]:
        made = images.node(lock, progress)
        return made.reference, made.archive

    return NodeImage(lock.kubernetes, lock.node_image, make)


def _default_account(context: Context) -> None:
    if context.kube.find("v1", "ServiceAccount", "default", "default") is None:
        raise NotYet("the controller manager has not created it")
