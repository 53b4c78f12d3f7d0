"""What both procedures share: their protocol, the context of their steps, checks of the host, and installing the driver."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from testbed.bringup.resolved_config import ResolvedConfig
from testbed.bringup.state import Record
from testbed.bringup.steps.plan import Plan
from testbed.drivers import install_all, keep_expected_nodes, releases_of
from testbed.errors import TestbedError
from testbed.kube.client import Kube
from testbed.kube.ownership import Owner
from testbed.models.config import TestbedConfig
from testbed.progress import Progress
from testbed.providers.base import Cluster, FoundCluster, HostProblem, LoadsImages

_MIN_MIB = 100  # logs, the API server's data, and what all nodes share
_MIN_MIB_PER_NODE = 150  # its images, as archives and unpacked: two nodes take 372 MiB after a few runs


@dataclass
class Context:
    """The input of the steps, and the results that one step leaves for the next ones."""

    resolved: ResolvedConfig
    folder: Path  # the folder of the cluster
    progress: Progress
    owner: Owner
    programs: dict[str, Path] = field(default_factory=dict)
    images: list[Path] = field(default_factory=list)
    sandbox_image: str = ""
    driver_image: str = ""
    made: Cluster | None = None
    kept_nodes: dict[str, list[str]] = field(default_factory=dict)

    @property
    def cluster(self) -> Cluster:
        """The cluster. Raise an error if no step has made it yet."""
        if self.made is None:
            raise TestbedError("a step needs the cluster before it was made", hint="report this as a bug")
        return self.made

    @cached_property
    def kube(self) -> Kube:
        """The cluster's API."""
        return Kube(self.cluster.kubeconfig)


Step = Callable[[Context], None]


@dataclass(frozen=True)
class ExpectedCluster:
    """The Kubernetes version and the number of nodes that a cluster should have; '' and 0 if they are not known yet."""

    kubernetes: str = ""
    nodes: int = 0


class Procedure(Protocol):
    """What `up`, `--plan`, `doctor` and `down` do with a kind of cluster."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of `up`, in order."""

    def expected_cluster(self, config: TestbedConfig) -> ExpectedCluster:
        """Return what the configuration says about the cluster, without asking the host or the cluster."""

    def problems(self, resolved: ResolvedConfig) -> Sequence[HostProblem]:
        """Return what will not work on this host, or in the cluster."""

    def check(self, resolved: ResolvedConfig, folder: Path, progress: Progress) -> None:
        """Raise an error for what would make a later step fail; change nothing."""

    def plan(self, resolved: ResolvedConfig) -> tuple[Plan, FoundCluster | None]:
        """Return what `up` would create, and the cluster if it exists already."""

    def remove_objects(self, record: Record, folder: Path, progress: Progress) -> None:
        """Remove the objects that the testbed created in its cluster, if the cluster outlives the testbed."""


def refuse_fatal(problems: Sequence[HostProblem]) -> None:
    """Raise an error that lists all fatal problems with their cures."""
    fatal = [problem for problem in problems if problem.fatal]
    if fatal:
        cures = "; ".join(dict.fromkeys(problem.cure for problem in fatal))
        raise TestbedError(
            "this host cannot run a testbed: " + "; ".join(problem.what for problem in fatal), hint=cures
        )


def disk_space(folder: Path, nodes: int) -> list[HostProblem]:
    """Return a problem if the disk has too little space for a testbed with so many nodes on this host."""
    needed = _MIN_MIB + nodes * _MIN_MIB_PER_NODE
    existing = next(parent for parent in folder.parents if parent.exists())
    free = shutil.disk_usage(existing).free >> 20
    if free >= needed:
        return []
    return [
        HostProblem(
            f"disk full: {free} MiB free at {existing}, this testbed needs {needed}",
            "free disk space, or move DRA_TESTBED_STATE",
        )
    ]


def keep_nodes(context: Context) -> None:
    """Determine where the drivers must run, before they are installed."""
    context.kept_nodes = keep_expected_nodes(context.kube, context.resolved.drivers)


def install_drivers(context: Context) -> None:
    """Install the drivers as their driver files say; return when they are registered and have published their devices."""
    drivers = context.resolved.drivers
    keep_nodes(context)
    names = " and ".join(each.driver for each in drivers)
    with context.progress.step(f"driver {names}"):
        hardware, image = context.resolved.config.hardware, context.driver_image
        is_loaded = isinstance(context.cluster, LoadsImages)
        releases = releases_of(context.kube, drivers, image=image, hardware=hardware, images_are_loaded=is_loaded)
        install_all(
            context.kube,
            drivers,
            context.owner,
            kept=context.kept_nodes,
            image=image,
            hardware=hardware,
            images_are_loaded=is_loaded,
            report=lambda change: context.progress.say(f"note: {change}"),
        )
    if releases:
        releases.write(context.folder.parent)
