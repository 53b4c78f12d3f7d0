"""Delete the objects of test processes that were killed before they cleaned up. Used by the plugin's controller and by the next session."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from testbed.errors import UsageError
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import PROCESS, Owner
from testbed.vocabulary.observing.diagnosis import describe_pod
from testbed.vocabulary.world import RESOURCE
from testbed.waiting import Budget, NotYet, eventually

# All other objects are in one of the namespaces.
_KINDS = (("v1", "Namespace"), (RESOURCE, "DeviceClass"), (RESOURCE, "DeviceTaintRule"))
_GONE = Budget("orphaned objects are gone", 120, "a namespace is removed after its objects; pods have a grace period")


def delete_orphans(kube: Kube, owner: Owner, is_gone: Callable[[str], bool]) -> list[str]:
    """Delete the objects of processes for which `is_gone` returns True, and return their names. It does not wait."""
    orphans = [each for each in _orphans(kube, owner, is_gone) if not each["metadata"].get("deletionTimestamp")]
    for each in orphans:
        kube.delete(each)
    return [each["metadata"]["name"] for each in orphans]


def delete_orphans_and_wait(kube: Kube, owner: Owner, is_gone: Callable[[str], bool]) -> list[str]:
    """Delete the same objects, wait until they are gone and return their names; until then their claims hold devices.

    Objects that were already being deleted are waited for, but not returned.
    """
    names = delete_orphans(kube, owner, is_gone)
    left = _orphans(kube, owner, is_gone)

    def gone() -> None:
        left[:] = [each for each in left if _exists(kube, each)]
        if left:
            raise NotYet("still there: " + "; ".join(_description(kube, each) for each in left))

    eventually(gone, "the objects of killed test processes to be gone", _GONE, longest_pause=0.2)
    return names


def _orphans(kube: Kube, owner: Owner, is_gone: Callable[[str], bool]) -> list[Object]:
    return [
        each
        for api_version, kind in _KINDS
        for each in _owned(kube, api_version, kind, owner)
        if is_gone(each["metadata"]["labels"].get(PROCESS, ""))
    ]


def _owned(kube: Kube, api_version: str, kind: str, owner: Owner) -> list[Object]:
    try:
        return kube.list(api_version, kind, labelSelector=owner.selector)
    except UsageError:  # before Kubernetes 1.37, resource.k8s.io/v1 has no DeviceTaintRule
        return []


def _exists(kube: Kube, each: Object) -> bool:
    found = kube.find(each["apiVersion"], each["kind"], each["metadata"]["name"])
    return found is not None and found["metadata"].get("uid") == each["metadata"].get("uid")


def _description(kube: Kube, each: Object) -> str:
    """Return kind and name of an object; for a namespace also its pods, and its claims with the devices that they hold."""
    name = each["metadata"]["name"]
    inside = [*_pods(kube, name), *_claims(kube, name)] if each["kind"] == "Namespace" else []
    return f"{each['kind'].lower()} {name}" + (f" with {', '.join(inside)}" if inside else "")


def _pods(kube: Kube, namespace: str) -> Iterator[str]:
    for each in kube.list("v1", "Pod", namespace):
        yield f"pod {each['metadata']['name']} ({describe_pod(each)})"


def _claims(kube: Kube, namespace: str) -> Iterator[str]:
    for each in kube.list(RESOURCE, "ResourceClaim", namespace):
        allocation = (each.get("status") or {}).get("allocation") or {}
        held = [f"{one['pool']}/{one['device']}" for one in allocation.get("devices", {}).get("results") or ()]
        yield f"claim {each['metadata']['name']}" + (f" (holds {', '.join(held)})" if held else "")
