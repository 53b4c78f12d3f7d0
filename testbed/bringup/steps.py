"""The steps of `up`, in order. Each takes the context, does one thing, and leaves what it found in the context for the next ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from testbed import binaries, folders, images
from testbed.binaries import Lock
from testbed.bringup import inspection
from testbed.drivers import expected_nodes, install_together, load_together
from testbed.drivers.expected_slices import slices_of
from testbed.errors import ApiError, TestbedError
from testbed.images.basics import WORKLOAD
from testbed.kube import nodes
from testbed.kube.client import Kube
from testbed.kube.ownership import Owner
from testbed.models.config import TestbedConfig
from testbed.models.driver_file import DriverFile
from testbed.models.gates import check_gates, check_runtime_config, check_skew
from testbed.progress import Progress
from testbed.providers import provider
from testbed.providers.base import Capability, Cluster, ClusterSpec, FindsClusters, NodeImage, Problem, Provider
from testbed.waiting import Budget, NotYet, eventually

_LEAST_MIB = 100  # logs, the API server's data, and what all nodes share
_LEAST_MIB_PER_NODE = 150  # its images, as archives and unpacked: two nodes have 372 MiB after a few runs
_ACCOUNT = Budget("default service account", 30, "the controller manager starts 40 controllers before it")


@dataclass
class Context:
    """What `up` knows so far."""

    config: TestbedConfig
    folder: Path
    progress: Progress
    provider: Provider
    lock: Lock
    owner: Owner
    drivers: tuple[DriverFile, ...] = ()  # the one under test, and those beside it
    programs: dict[str, Path] = field(default_factory=dict)
    sandbox: str = ""
    archives: list[Path] = field(default_factory=list)
    driver_image: str = ""
    cluster: Cluster | None = None
    kube: Kube | None = None

    @property
    def driver_file(self) -> DriverFile | None:
        """The driver under test, where there is one."""
        return self.drivers[0] if self.drivers else None

    @property
    def the_cluster(self) -> Cluster:
        """The cluster, once it has been made."""
        if self.cluster is None:
            raise TestbedError("the cluster was not made yet")
        return self.cluster

    @property
    def the_kube(self) -> Kube:
        """The API, once there is one."""
        if self.kube is None:
            raise TestbedError("the API server was not started yet")
        return self.kube


def begin(config: TestbedConfig, folder: Path, progress: Progress, owner: Owner) -> Context:
    """Check the whole request before anything is touched: versions, gates, the driver file, the host or the cluster."""
    context = request(config, folder, progress, owner)
    found = [*context.provider.preflight(spec_of(context)), *_space(folder, _nodes_here(context))]
    fatal = [problem for problem in found if problem.fatal]
    if fatal:
        cures = "; ".join(dict.fromkeys(problem.cure for problem in fatal))
        raise TestbedError(
            "this host cannot run a testbed: " + "; ".join(problem.what for problem in fatal), hint=cures
        )
    if isinstance(context.provider, FindsClusters):
        look = inspection.look_at(context.provider, spec_of(context))
        remarks = inspection.refuse_what_will_fail(look, config, context.drivers, workload_image(config))
        for each in [*(f"{problem.what}: {problem.cure}" for problem in found), *remarks]:
            progress.say(f"note: {each}")
    return context


def request(config: TestbedConfig, folder: Path, progress: Progress, owner: Owner | None = None) -> Context:
    """Check what can be checked without looking at this host: `run --plan` does no more."""
    lock = binaries.lock_for(config.kubernetes)
    if config.kubelet:
        older = binaries.lock_for(config.kubelet)
        check_skew(lock.kubernetes, older.kubernetes)
        check_gates(config.feature_gates, older.gates)
    check_gates(config.feature_gates, lock.gates)
    check_runtime_config(config.runtime_config, lock.resource_versions)
    context = Context(config, folder, progress, provider(config.provider), lock, owner or Owner(config.name, ""))
    context.drivers = load_together(config.driver) if config.driver else ()
    _refuse_wrong_hardware(context)
    return context


def _refuse_wrong_hardware(context: Context) -> None:
    """The fake driver reads the file itself; asked here, it says all mistakes before there is a cluster in which it would only crash.

    What adds up on a node depends on its name; nodes have these names where the cluster is ours.
    """
    file = context.config.hardware
    ours = any(each.install and each.install.built_in_image for each in context.drivers)
    if ours and file and file.parent != folders.data("manifests") / "hardware":
        count = context.config.nodes
        slices_of(file, *(f"node-{number:0{len(str(count))}}" for number in range(1, count + 1)))


def fetch_programs(context: Context) -> None:
    """The upstream programs that the provider needs."""
    wanted, sources = context.provider.programs(), context.config.binaries_from or None
    if not wanted:
        return
    context.programs = binaries.ensure(context.lock, wanted, progress=context.progress, sources=sources)
    if context.config.kubelet and "kubelet" in wanted:
        older = binaries.lock_for(context.config.kubelet)
        context.programs |= binaries.ensure(older, ["kubelet"], progress=context.progress, sources=sources)


def build_images(context: Context) -> None:
    """The images that nodes start with, and the driver's. Nodes that are not ours have them, or pull them."""
    if isinstance(context.provider, FindsClusters):
        return
    sandbox = images.sandbox(context.progress)
    context.sandbox = sandbox.reference
    context.archives = [sandbox.archive]
    if not context.config.images.workload:
        context.archives.append(images.workload(context.progress).archive)
    installed = [each.install for each in context.drivers if each.install]
    if any(each.built_in_image for each in installed):
        _driver_image(context)
    context.archives += dict.fromkeys(archive for each in installed for archive in each.images)


def _driver_image(context: Context) -> None:
    context.driver_image = context.config.images.driver or ""
    if not context.driver_image:
        built = images.driver(context.progress)
        context.driver_image = built.reference
        context.archives.append(built.archive)


def make_cluster(context: Context) -> None:
    """The cluster itself, by its provider."""
    context.cluster = context.provider.create(context.config.name, spec_of(context), context.folder, context.progress)
    context.kube = Kube(context.cluster.kubeconfig)


def wait_until_usable(context: Context) -> None:
    """Nodes Ready, pods admitted, Dynamic Resource Allocation served. A cluster that is not ours was looked at before."""
    if isinstance(context.provider, FindsClusters):
        return
    with context.progress.step("nodes take pods, default service account, resource.k8s.io"):
        logs = f"dra-testbed logs --name {context.config.name}"
        wanted = [node.name for node in context.the_cluster.nodes()]
        nodes.wait_until_usable(context.the_kube, wanted, hint=logs)
        eventually(lambda: _account(context), "the default service account", _ACCOUNT, hint=logs, longest_pause=0.1)
        try:
            context.the_kube.resource("resource.k8s.io/v1", "ResourceSlice")
        except ApiError as missing:
            raise TestbedError(
                "the API server does not serve resource.k8s.io/v1", hint="look at --runtime-config"
            ) from missing


def install_driver(context: Context) -> None:
    """The driver, as its driver file says, until it is registered and has published its devices."""
    if context.driver_file is None:
        return
    if Capability.MAKE_OBJECTS not in context.the_cluster.capabilities:
        context.progress.say(f"driver {context.driver_file.driver} is judged as it is: nothing may be made there")
        return
    if isinstance(context.provider, FindsClusters):
        context.driver_image = inspection.driver_image(context.config, context.drivers)
    names = " and ".join(each.driver for each in context.drivers)
    with context.progress.step(f"driver {names}"):
        hardware, image = context.config.hardware, context.driver_image
        install_together(context.the_kube, context.drivers, context.owner, image=image, hardware=hardware)


def _nodes_here(context: Context) -> int:
    """How many nodes are made; those of a cluster that is found bring their own disks."""
    return 0 if isinstance(context.provider, FindsClusters) else context.config.nodes


def _space(folder: Path, nodes: int) -> list[Problem]:
    """What a testbed writes at least: images, twice per node, and logs."""
    least = _LEAST_MIB + nodes * _LEAST_MIB_PER_NODE
    place = next(parent for parent in folder.parents if parent.exists())
    free = shutil.disk_usage(place).free >> 20
    if free >= least:
        return []
    return [
        Problem(
            f"disk full: {free} MiB free at {place}, this testbed needs {least}",
            "make room, or move DRA_TESTBED_STATE",
        )
    ]


STEPS: tuple[Callable[[Context], None], ...] = (
    fetch_programs,
    build_images,
    make_cluster,
    wait_until_usable,
    install_driver,
)


def spec_of(context: Context) -> ClusterSpec:
    """What is asked of the provider."""
    config = context.config
    return ClusterSpec(
        kubernetes=context.lock.kubernetes,
        nodes=config.nodes,
        feature_gates=config.feature_gates,
        gates_unknown_to_scheduler=frozenset(context.lock.knowledge.unknown_to_scheduler)
        if config.feature_gates
        else frozenset(),
        runtime_config=config.runtime_config,
        programs=context.programs,
        images=tuple(context.archives),
        sandbox_image=context.sandbox,
        kubelet=binaries.lock_for(config.kubelet).kubernetes if config.kubelet else "",
        node_image=_node_image,
        options=getattr(config, config.provider, None),
        given=config.given,
        owner=context.owner,
        workload_image=workload_image(config),
        driver_nodes=_driver_nodes(context.driver_file),
    )


def _driver_nodes(driver_file: DriverFile | None) -> Callable[[Kube], Collection[str]] | None:
    return (lambda kube: expected_nodes(kube, driver_file)) if driver_file else None


def workload_image(config: TestbedConfig) -> str:
    """The image of the suites' pods."""
    return config.images.workload or WORKLOAD.reference


def _node_image(version: str) -> NodeImage:
    lock = binaries.lock_for(version)

    def make(progress: Progress) -> tuple[str, Path]:
        made = images.node(lock, progress)
        return made.reference, made.archive

    return NodeImage(lock.kubernetes, lock.node_image, make)


def _account(context: Context) -> None:
    if context.the_kube.find("v1", "ServiceAccount", "default", "default") is None:
        raise NotYet("the controller manager has not made it")
