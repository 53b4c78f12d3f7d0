"""Finds the claims that hold devices of a driver, for the facts of a run and for diagnosing pending pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from testbed.drivers.published.slices import pools
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import Owner


@dataclass(frozen=True, order=True)
class HeldDevice:
    """A device, or a share of one, that is allocated to a claim. The node of a network-attached device is ''."""

    claim: str
    node: str
    pool: str
    device: str
    shared: bool = False

    def __str__(self) -> str:
        return f"claim {self.claim} holds {self.device} of {self.node or f'pool {self.pool}'}"


def devices_held_by_others(kube: Kube, owner: Owner | None, driver: str, slices: Iterable[Object]) -> list[HeldDevice]:
    """Return the devices in these slices that are allocated to claims of others, sorted. Admin access does not count."""
    nodes = _nodes(slices, driver)
    if not nodes:
        return []
    others = namespaces_of_others(kube, owner)
    claims = kube.list("resource.k8s.io/v1", "ResourceClaim")
    return _held([claim for claim in claims if claim["metadata"]["namespace"] in others], driver, nodes)


def held_devices(kube: Kube, driver: str, slices: Iterable[Object]) -> list[HeldDevice]:
    """Return the devices in these slices that are allocated to any claim, sorted."""
    return _held(kube.list("resource.k8s.io/v1", "ResourceClaim"), driver, _nodes(slices, driver))


def summarize(held: Iterable[object]) -> str:
    """Describe the first of the held devices and count the others; '' if there is none."""
    first, *others = sorted(map(str, held)) or [""]
    return f"{first}, and {len(others)} more are held" if others else first


def namespaces_of_others(kube: Kube, owner: Owner | None) -> frozenset[str]:
    """Return the namespaces of others. Deleted ones do not count: tests that run in parallel delete their own."""
    found = kube.list("v1", "Namespace")
    return frozenset(each["metadata"]["name"] for each in found if not owner or not owner.owns(each))


def _held(claims: Iterable[Object], driver: str, nodes: dict[tuple[str, str], str]) -> list[HeldDevice]:
    return sorted(
        HeldDevice(_name(claim), nodes[key], *key, shared="shareID" in result)
        for claim in claims
        for result in _results(claim)
        if result["driver"] == driver and (key := (result["pool"], result["device"])) in nodes
    )


def _nodes(slices: Iterable[Object], driver: str) -> dict[tuple[str, str], str]:
    """Return the node of each device, by pool and name."""
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
