"""The condition of the cluster that a disruptive test has to restore. The plugin compares it before and after each disruptive test."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from testbed.drivers.published.holders import namespaces_of_others
from testbed.drivers.published.slices import pools
from testbed.drivers.ready import driver_pods, unready_reason
from testbed.errors import DriverFailed, WaitTimeout
from testbed.kube.client import Object
from testbed.kube.ownership import REQUIREMENT
from testbed.vocabulary import budgets
from testbed.vocabulary.world import RESOURCE, World
from testbed.waiting import NotYet, eventually

_NOT_PUBLISHED = "the driver did not publish its devices again after a restart: LIFE-003 (of the kubelet) and LIFE-043 (its own) judge that"


@dataclass(frozen=True)
class ClusterCondition:
    """Nodes, drivers and devices that must be ready again after a test, and objects that it must not leave behind."""

    ready_nodes: frozenset[str]
    ready_drivers: frozenset[str]
    devices: frozenset[str]
    namespaces: frozenset[str]
    allocated_claims: frozenset[str]


def current_condition(world: World) -> ClusterCondition:
    """Return the current condition of the cluster."""
    kube, driver = world.kube, world.driver_file.driver
    ours = kube.list("v1", "Namespace", labelSelector=world.owner.selector)
    others = namespaces_of_others(kube, world.owner)
    claims = kube.list(RESOURCE, "ResourceClaim")
    return ClusterCondition(
        ready_nodes=frozenset(_name(node) for node in kube.list("v1", "Node") if _ready(node)),
        ready_drivers=frozenset(_node(pod) for pod in driver_pods(kube, world.driver_file) if _ready(pod)),
        devices=frozenset(_devices(world.slices_with_devices_in_use(), driver)),
        namespaces=frozenset(_name(each) for each in ours if REQUIREMENT in each["metadata"]["labels"]),
        # Not those of others, which may be allocated during the test.
        allocated_claims=frozenset(_full_name(each) for each in claims if _is_left(each, others)),
    )


def wait_until_restored(world: World, before: ClusterCondition) -> None:
    """Wait until the cluster is in its earlier condition again. Raise an error with the differences if it does not return to it.

    A pod or device of the driver that does not come back on nodes that are Ready is the driver's failure.
    """

    def restored() -> None:
        found = differences(before, current_condition(world))
        if found:
            raise NotYet("; ".join(found))

    what = "the cluster to be as it was before the test"
    try:
        eventually(restored, what, budgets.CLUSTER_RESTORED)
    except WaitTimeout as late:
        now = current_condition(world)
        if before.ready_nodes <= now.ready_nodes and lacks_driver(before, now):
            last = "; ".join([late.last_seen, *_unready_pods(world)])
            hint = _NOT_PUBLISHED if not before.devices <= now.devices else ""
            raise DriverFailed(f"expected {what}\n  last seen: {last}\n  waited: {late.budget}", hint=hint) from late
        raise


def lacks_driver(before: ClusterCondition, now: ClusterCondition) -> bool:
    """Return True if a pod of the driver is not ready any more, or its devices are not the same."""
    return bool(before.ready_drivers - now.ready_drivers) or before.devices != now.devices


def _unready_pods(world: World) -> list[str]:
    """Return why pods of the driver are not ready."""
    return list(filter(None, map(unready_reason, driver_pods(world.kube, world.driver_file))))


def differences(before: ClusterCondition, now: ClusterCondition) -> list[str]:
    """Describe what is missing or left behind."""
    found = {
        "node not Ready:": before.ready_nodes - now.ready_nodes,
        "no ready pod of the driver on": before.ready_drivers - now.ready_drivers,
        "device no longer published:": before.devices - now.devices,
        "device newly published:": now.devices - before.devices,
        "namespace left behind:": now.namespaces - before.namespaces,
        "claim still allocated:": now.allocated_claims - before.allocated_claims,
    }
    return [f"{what} {', '.join(sorted(which))}" for what, which in found.items() if which]


def _devices(slices: Iterable[Object], driver: str) -> list[str]:
    """Return the devices of complete pools; an incomplete pool is not restored yet."""
    complete = [pool for pool in pools(slices, driver) if pool.complete]
    return [
        f"{pool.name}/{device['name']}"
        for pool in complete
        for each in pool.slices
        for device in each["spec"].get("devices") or ()
    ]


def _is_left(claim: Object, others: Collection[str]) -> bool:
    return claim["metadata"]["namespace"] not in others and bool(claim.get("status", {}).get("allocation"))


def _ready(each: Object) -> bool:
    conditions = each.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _name(each: Object) -> str:
    return str(each["metadata"]["name"])


def _full_name(each: Object) -> str:
    return f"{each['metadata']['namespace']}/{_name(each)}"


def _node(pod: Object) -> str:
    return str(pod["spec"].get("nodeName", ""))
