"""Find the facts that selection decides by, once, in a cluster with a driver. Called by the plugin's controller and by `run --plan`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from testbed.binaries.lock import lock_for, minors
from testbed.conformance.selection import Facts
from testbed.drivers import expected_nodes
from testbed.drivers.slices import ordinary, pools
from testbed.kube import features
from testbed.kube.client import Kube
from testbed.models.driver_file import DriverFile
from testbed.models.gates import is_on
from testbed.providers.base import Capability


def gather(kube: Kube, driver_file: DriverFile, capabilities: Iterable[Capability]) -> Facts:
    """What is there now."""
    everything = kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={driver_file.driver}")
    slices = ordinary(everything, driver_file.other_devices, driver_file.driver)
    version = str(kube.request("GET", "/version")["gitVersion"])
    gates = features.gates(kube)
    return Facts(
        kubernetes=version,
        nodes=len(expected_nodes(kube, driver_file)),
        devices=sum(pool.devices for pool in pools(slices, driver_file.driver)),
        capabilities=frozenset(each.value for each in capabilities),
        features=driver_file.features,
        gates=usual_gates(version) if gates is None else frozenset(name for name in gates if gates[name]),
    )


def expected(
    kubernetes: str, nodes: int, features: frozenset[str] = frozenset(), gates: Mapping[str, bool] | None = None
) -> Facts:
    """What a testbed that is not there yet will have; a cluster that cannot do something will only say so when it is up."""
    able = frozenset(each.value for each in Capability)
    return Facts(kubernetes, nodes, 0, able, features, usual_gates(kubernetes, gates or {}))


def usual_gates(kubernetes: str, changed: Mapping[str, bool] | None = None) -> frozenset[str]:
    """The gates that are on in that Kubernetes by itself, and after what somebody changed. Of versions that are not locked here: none."""
    minor = ".".join(kubernetes.removeprefix("v").split(".")[:2])
    known = lock_for(minor).gates if minor in minors() else {}
    return frozenset(name for name in known if is_on(name, changed or {}, known))
