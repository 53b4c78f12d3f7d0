"""A configuration with everything that follows from it: versions, driver files, the cluster's spec. For `up`, `--plan` and `doctor`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from testbed import binaries, folders
from testbed.binaries import Lock
from testbed.drivers import early_checks, keep_expected_nodes, load_with_companions
from testbed.drivers.expected_slices import expected_slices
from testbed.errors import UsageError
from testbed.images.basics import WORKLOAD
from testbed.kube.client import Kube
from testbed.models.config import TestbedConfig
from testbed.models.driver_file import DriverFile
from testbed.models.gates import check_gates, check_runtime_config, check_skew
from testbed.providers import provider
from testbed.providers.base import ClusterSpec


@dataclass(frozen=True)
class ResolvedConfig:
    """A checked configuration. `drivers` are the driver under test, if there is one, and its companions."""

    config: TestbedConfig
    lock: Lock
    kubelet_lock: Lock | None
    drivers: tuple[DriverFile, ...]
    spec: ClusterSpec

    @property
    def driver_file(self) -> DriverFile | None:
        """The driver under test, if there is one."""
        return self.drivers[0] if self.drivers else None

    @property
    def installed(self) -> tuple[str, ...]:
        """The names of the drivers that `up` installs."""
        return tuple(each.driver for each in self.drivers if each.install)


def resolve(config: TestbedConfig) -> ResolvedConfig:
    """Check everything that can be checked without this host and without a cluster. Raise UsageError for the first mistake."""
    lock = binaries.lock_for(config.kubernetes)
    kubelet_lock = binaries.lock_for(config.kubelet) if config.kubelet else None
    if kubelet_lock:
        check_skew(lock.kubernetes, kubelet_lock.kubernetes)
        check_gates(config.feature_gates, kubelet_lock.gates)
    check_gates(config.feature_gates, lock.gates)
    check_runtime_config(config.runtime_config, lock.resource_versions)
    drivers = load_with_companions(config.driver) if config.driver else ()
    check_needs(config.provider, drivers)
    early_checks.check(drivers, config.hardware, lock.kubernetes)
    _check_hardware(config, drivers)
    return ResolvedConfig(config, lock, kubelet_lock, drivers, _cluster_spec(config, lock, kubelet_lock, drivers))


def check_needs(provider_name: str, drivers: Collection[DriverFile]) -> None:
    """Raise UsageError if the provider's nodes lack something that a driver needs."""
    offered = provider(provider_name).node_facilities()
    for each in drivers:
        missing = sorted(set(each.spec.needs).difference(offered))
        if missing:
            raise UsageError(
                f"spec.needs: driver {each.name} needs {' and '.join(missing)}, which nodes of provider {provider_name} do not offer",
                hint="use a cluster that does: --provider existing",
            )
        if each.install and each.install.process and "host-files" not in offered:
            raise UsageError(
                f"spec.install.process: driver {each.name} runs as a process of this host's files, which nodes of provider {provider_name} "
                "do not have",
                hint="--provider local; or put the program into an image, and use spec.install.manifests",
            )


def _check_hardware(config: TestbedConfig, drivers: Collection[DriverFile]) -> None:
    """Refuse a wrong hardware file of the user before there is a cluster, in which the fake driver could only crash.

    The file may differ by node name. Nodes have these names in a cluster that a provider makes.
    """
    file = config.hardware
    fake = any(each.install and each.install.built_in_image for each in drivers)
    if fake and file and file.parent != folders.data("manifests") / "hardware":
        width = len(str(config.nodes))
        expected_slices(file, *(f"node-{number:0{width}}" for number in range(1, config.nodes + 1)))


def _cluster_spec(
    config: TestbedConfig, lock: Lock, kubelet_lock: Lock | None, drivers: tuple[DriverFile, ...]
) -> ClusterSpec:
    unknown = lock.api_facts.unknown_to_scheduler if config.feature_gates else ()
    return ClusterSpec(
        kubernetes=lock.kubernetes,
        nodes=config.nodes,
        feature_gates=config.feature_gates,
        gates_unknown_to_scheduler=frozenset(unknown),
        runtime_config=config.runtime_config,
        kubelet=kubelet_lock.kubernetes if kubelet_lock else "",
        options=config.provider_options,
        given=config.given,
        workload_image=config.images.workload or WORKLOAD.reference,
        driver_nodes=_driver_nodes(drivers[0]) if drivers else None,
    )


def _driver_nodes(driver_file: DriverFile) -> Callable[[Kube], Collection[str]]:
    return lambda kube: [node for nodes in keep_expected_nodes(kube, [driver_file]).values() for node in nodes]
