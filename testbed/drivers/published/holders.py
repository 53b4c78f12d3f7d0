"""Who else has devices of a driver: claims that are not of this testbed. For the facts of a run, and for what keeps a pod waiting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from testbed.drivers.published.slices import pools
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import Owner


@dataclass(frozen=True, order=True)
class HeldDevice:
    """A device that somebody else's claim has, or a share of it. The node is '' where it belongs to none."""

    claim: str
    node: str
    pool: str
    device: str
    shared: bool = False

    def __str__(self) -> str:
        return f"claim {self.claim} holds {self.device} of {self.node or f'pool {self.pool}'}"


def devices_held_by_others(kube: Kube, owner: Owner | None, driver: str, slices: Iterable[Object]) -> list[HeldDevice]:
    """The devices in these slices that claims of others have, sorted. Looking at a device (admin access) takes it from nobody."""
    nodes = _nodes(slices, driver)
    if not nodes:
        return []
    others = namespaces_of_others(kube, owner)
    claims = kube.list("resource.k8s.io/v1", "ResourceClaim")
    return _held([claim for claim in claims if claim["metadata"]["namespace"] in others], driver, nodes)


def held_devices(kube: Kube, driver: str, slices: Iterable[Object]) -> list[HeldDevice]:
    """The devices in these slices that any claim has, sorted."""
    return _held(kube.list("resource.k8s.io/v1", "ResourceClaim"), driver, _nodes(slices, driver))


def summarize(taken: Iterable[object]) -> str:
    """Who holds what, shortly; '' when nobody holds anything."""
    first, *others = sorted(map(str, taken)) or [""]
    return f"{first}, and {len(others)} more are held" if others else first


def namespaces_of_others(kube: Kube, owner: Owner | None) -> frozenset[str]:
    """Those that are not this testbed's. One that is not there is its own: tests beside this one make and end theirs meanwhile."""
    found = kube.list("v1", "Namespace")
    return frozenset(each["metadata"]["name"] for each in found if not owner or not owner.owns(each))


def _held(claims: Iterable[Object], driver: str, nodes: dict[tuple[str, str], str]) -> list[HeldDevice]:
    return sorted(
        HeldDevice(_name(claim), nodes[place], *place, shared="shareID" in result)
        for claim in claims
        for result in _results(claim)
        if result["driver"] == driver and (place := (result["pool"], result["device"])) in nodes
    )


def _nodes(slices: Iterable[Object], driver: str) -> dict[tuple[str, str], str]:
    """The node of each device, by its pool and name."""
    return {
        (pool.name, device["name"]): each["spec"].get("nodeName", "")
        for pool in pools(slices, driver)
        for each in pool.slices
        for device in each["spec"].get("devices") or ()
    }


def _results(claim: Object) -> Iterator[Object]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    found = allocation.get("devices", {}).get("results") or ()
    return (each for each in found if not each.get("adminAccess"))


def _name(claim: Object) -> str:
    return f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"
