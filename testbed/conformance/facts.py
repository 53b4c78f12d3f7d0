"""The facts of a cluster and its driver that selection depends on. Called once per run by the plugin's controller, and by `run --plan`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from testbed.binaries.lock import lock_for, minors
from testbed.conformance.gates import find_gates
from testbed.conformance.requirement import GIVEN
from testbed.conformance.selection import Facts, oldest
from testbed.drivers import KeptNodes, expected_nodes
from testbed.drivers.published.holders import HeldDevice, devices_held_by_others, summarize
from testbed.drivers.published.placement import is_of_nodes, named_nodes
from testbed.drivers.published.slices import Pool, pools, reserved_kinds, without_other_devices
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import Owner
from testbed.models.driver.devices import ClaimShape
from testbed.models.driver_file import DriverFile
from testbed.models.gates import is_on
from testbed.providers.base import Capability


def gather(
    kube: Kube,
    driver_file: DriverFile,
    capabilities: Collection[Capability],
    owner: Owner | None = None,
    kept: KeptNodes | None = None,
) -> Facts:
    """Return the facts of a running cluster. Devices that claims of others hold are not counted as available."""
    everything = kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={driver_file.driver}")
    others, driver = driver_file.other_devices, driver_file.driver
    ordinary, nodes = without_other_devices(everything, others, driver), expected_nodes(kube, driver_file, kept)
    held = _held_devices(kube, owner, driver, ordinary) if Capability.MAKE_OBJECTS in capabilities else []
    each = _count_by_node(pools(ordinary, driver))
    each.subtract(one.node for one in held)
    if len(driver_file.devices.classes) > 1:  # which of them selects a device is not known here
        each = Counter({node: min(count, driver_file.devices.per_node) for node, count in each.items()})
    each = Counter({node: _claims(count, driver_file.devices.claim, held, node) for node, count in each.items()})
    version = str(kube.request("GET", "/version")["gitVersion"])
    defaults = default_gates(version)
    gates = find_gates(kube, version, defaults, may_create=Capability.MAKE_OBJECTS in capabilities)
    published = _count_by_node(pools(ordinary, driver))
    return Facts(
        kubernetes=version,
        nodes=len(nodes),
        devices=sum(each[node] for node in nodes) + each[""],
        min_node_devices=min((each[node] for node in nodes), default=0) + each[""],
        capabilities=frozenset(each.value for each in capabilities),
        features=driver_file.features,
        gates=gates.on,
        gates_assumed=gates.assumed,
        default_gates=defaults,
        max_node_devices=max((published[node] for node in nodes), default=0) + published[""],
        reserved_classes=reserved_kinds(everything, others, driver),
        kubelet=oldest(_kubelets(kube, nodes)),
        given=driver_file.given | _observed_assumptions(pools(ordinary, driver)),
        held_by_others=summarize(one for one in held if one.node in {*nodes, ""}),
        claim=driver_file.devices.claim,
    )


def _claims(devices: int, claim: ClaimShape, held: Iterable[HeldDevice], node: str) -> int:
    """Return how many of the smallest claims that the driver accepts fit on a node with this many available devices."""
    if claim.counts == "all":
        return int(devices > 0 and all(one.node != node for one in held))
    return devices // claim.count


def _observed_assumptions(ordinary: Iterable[Pool]) -> frozenset[str]:
    """Return the assumptions about ordinary devices that are true for all published ones, also if the driver file declares otherwise.

    A false declaration must not exempt a driver: devices of nodes are not network-attached, and ordinary devices are not shared.
    """
    parts = [part["spec"] for pool in ordinary for part in pool.slices if part["spec"].get("devices")]
    if not parts:
        return frozenset()
    local = all(is_of_nodes(part, device) for part in parts for device in part["devices"])
    unshared = not any(device.get("allowMultipleAllocations") for part in parts for device in part["devices"])
    return frozenset(word for word, holds in {"local": local, "unshared": unshared}.items() if holds)


def _held_devices(kube: Kube, owner: Owner | None, driver: str, slices: Iterable[Object]) -> list[HeldDevice]:
    """Return the devices that others hold as a whole. If they hold only a share, tests can use the rest."""
    return [each for each in devices_held_by_others(kube, owner, driver, slices) if not each.shared]


def _kubelets(kube: Kube, nodes: Collection[str]) -> list[str]:
    found = [each for each in kube.list("v1", "Node") if each["metadata"]["name"] in nodes]
    return [each["status"].get("nodeInfo", {}).get("kubeletVersion", "") for each in found]


def _count_by_node(found: Iterable[Pool]) -> Counter[str]:
    """Return the number of devices of each node. Key '' counts devices that all nodes can use."""
    each: Counter[str] = Counter()
    for one in (part for pool in found for part in pool.slices):
        for device in one["spec"].get("devices") or ():
            each.update(named_nodes(one["spec"], device) or [""])
    return each


def expected_facts(
    kubernetes: str,
    nodes: int,
    features: frozenset[str] = frozenset(),
    gates: Mapping[str, bool] | None = None,
    kubelet: str = "",
    given: frozenset[str] = frozenset(GIVEN),
    claim: ClaimShape = ClaimShape(),  # noqa: B008 - it is immutable
) -> Facts:
    """Return the facts of a testbed that will be made. All capabilities are assumed: only a running cluster shows which it lacks."""
    able = frozenset(each.value for each in Capability)
    on, defaults = default_gates(kubernetes, gates or {}), default_gates(kubernetes)
    return Facts(
        kubernetes, nodes, 0, able, features, on, kubelet=kubelet, default_gates=defaults, given=given, claim=claim
    )


def default_gates(kubernetes: str, changed: Mapping[str, bool] | None = None) -> frozenset[str]:
    """Return the feature gates that are on in that version of Kubernetes, with these changes to its defaults.

    A gate that is not known for the version is on if an older version made it GA.
    """
    minor = ".".join(kubernetes.removeprefix("v").split(".")[:2])
    known = lock_for(minor).gates if minor in minors() else {}
    until_then = (lock_for(each).gates for each in minors() if oldest([each, minor]) == each)
    ga_by_then = {name for gates in until_then for name, gate in gates.items() if gate.stage == "ga" and gate.default}
    return frozenset(name for name in known if is_on(name, changed or {}, known)).union(ga_by_then.difference(known))
