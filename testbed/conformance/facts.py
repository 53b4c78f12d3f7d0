"""Find the facts that selection decides by, once, in a cluster with a driver. Called by the plugin's controller and by `run --plan`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from testbed.binaries.lock import lock_for, minors
from testbed.conformance.gates import gates_found
from testbed.conformance.selection import Facts, oldest
from testbed.drivers import expected_nodes
from testbed.drivers.published.holders import HeldDevice, devices_held_by_others, summarize
from testbed.drivers.published.slices import Pool, pools, reserved_kinds, without_other_devices
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import Owner
from testbed.models.driver_file import DriverFile
from testbed.models.gates import is_on
from testbed.providers.base import Capability

_SHARED = "allowMultipleAllocations"


def gather(
    kube: Kube, driver_file: DriverFile, capabilities: Collection[Capability], owner: Owner | None = None
) -> Facts:
    """What is there now. What claims have that are not the owner's is no device for the tests."""
    everything = kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={driver_file.driver}")
    others, driver = driver_file.other_devices, driver_file.driver
    usual, nodes = without_other_devices(everything, others, driver), expected_nodes(kube, driver_file)
    taken = _taken(kube, owner, driver, usual) if Capability.MAKE_OBJECTS in capabilities else []
    each = _counted(pools(usual, driver))
    each.subtract(one.node for one in taken)
    version = str(kube.request("GET", "/version")["gitVersion"])
    gates = gates_found(kube, version, usual_gates(version), tries=Capability.MAKE_OBJECTS in capabilities)
    published, shared = (
        _counted(pools(without_other_devices(everything, others, driver), driver), saying) for saying in ("", _SHARED)
    )
    return Facts(
        kubernetes=version,
        nodes=len(nodes),
        devices=sum(each[node] for node in nodes) + each[""],
        node_devices=min((each[node] for node in nodes), default=0) + each[""],
        capabilities=frozenset(each.value for each in capabilities),
        features=driver_file.features,
        gates=gates.on,
        gates_assumed=gates.assumed,
        network_devices=published[""],
        shared_devices=sum(shared[node] for node in {*nodes, ""}),
        most_devices=max((published[node] for node in nodes), default=0) + published[""],
        apart=reserved_kinds(everything, others, driver),
        kubelet=oldest(_kubelets(kube, nodes)),
        held=summarize(one for one in taken if one.node in {*nodes, ""}),
    )


def _taken(kube: Kube, owner: Owner | None, driver: str, slices: Iterable[Object]) -> list[HeldDevice]:
    """Who has a share leaves the others to everybody."""
    return [each for each in devices_held_by_others(kube, owner, driver, slices) if not each.shared]


def _kubelets(kube: Kube, nodes: Collection[str]) -> list[str]:
    found = [each for each in kube.list("v1", "Node") if each["metadata"]["name"] in nodes]
    return [each["status"].get("nodeInfo", {}).get("kubeletVersion", "") for each in found]


def _counted(found: Iterable[Pool], saying: str = "") -> Counter[str]:
    """How many devices each node has of its own, or of those that say this; those under '' belong to no node, and all can use them."""
    each: Counter[str] = Counter()
    for one in (part for pool in found for part in pool.slices):
        devices = [device for device in one["spec"].get("devices") or () if not saying or device.get(saying)]
        each[one["spec"].get("nodeName", "")] += len(devices)
    return each


def expected(
    kubernetes: str,
    nodes: int,
    features: frozenset[str] = frozenset(),
    gates: Mapping[str, bool] | None = None,
    kubelet: str = "",
) -> Facts:
    """What a testbed that is not there yet will have; a cluster that cannot do something will only say so when it is up."""
    able = frozenset(each.value for each in Capability)
    return Facts(kubernetes, nodes, 0, able, features, usual_gates(kubernetes, gates or {}), kubelet=kubelet)


def usual_gates(kubernetes: str, changed: Mapping[str, bool] | None = None) -> frozenset[str]:
    """The gates that are on in that Kubernetes by itself, and after what somebody changed.

    Those that it does not know, or not to us because it is not locked here, are on where an older version had them for good.
    """
    minor = ".".join(kubernetes.removeprefix("v").split(".")[:2])
    known = lock_for(minor).gates if minor in minors() else {}
    by_now = (lock_for(each).gates for each in minors() if oldest([each, minor]) == each)
    for_good = {name for gates in by_now for name, gate in gates.items() if gate.stage == "ga" and gate.default}
    return frozenset(name for name in known if is_on(name, changed or {}, known)).union(for_good.difference(known))
