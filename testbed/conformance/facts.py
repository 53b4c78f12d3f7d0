"""Find the facts that selection decides by, once, in a cluster with a driver. Called by the plugin's controller and by `run --plan`."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.conformance.selection import Facts
from testbed.drivers import expected_nodes
from testbed.drivers.slices import pools
from testbed.kube.client import Kube
from testbed.models.driver_file import DriverFile
from testbed.providers.base import Capability


def gather(kube: Kube, driver_file: DriverFile, capabilities: Iterable[Capability]) -> Facts:
    """What is there now."""
    slices = kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={driver_file.driver}")
    return Facts(
        kubernetes=str(kube.request("GET", "/version")["gitVersion"]),
        nodes=len(expected_nodes(kube, driver_file)),
        devices=sum(pool.devices for pool in pools(slices, driver_file.driver)),
        capabilities=frozenset(each.value for each in capabilities),
        features=driver_file.features,
    )


def expected(kubernetes: str, nodes: int, features: frozenset[str] = frozenset()) -> Facts:
    """What a testbed that is not there yet will have; a cluster that cannot do something will only say so when it is up."""
    able = frozenset(each.value for each in Capability)
    return Facts(kubernetes, nodes, devices=0, capabilities=able, features=features)
