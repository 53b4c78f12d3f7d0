"""What processes of a run made and could not delete, because they were killed. The plugin's controller deletes it, or the next session."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from testbed.errors import UsageError
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import PROCESS, Owner
from testbed.vocabulary.observing.diagnosis import describe_pod
from testbed.vocabulary.world import RESOURCE
from testbed.waiting import Budget, NotYet, eventually

# All else is in one of the namespaces.
_KINDS = (("v1", "Namespace"), (RESOURCE, "DeviceClass"), (RESOURCE, "DeviceTaintRule"))
_GONE = Budget("leftovers gone", 120, "a namespace ends after all that is in it; pods get their grace period")


def delete_orphans(kube: Kube, owner: Owner, is_gone: Callable[[str], bool]) -> list[str]:
    """Delete what was made by processes that are gone, by their words; the names. Namespaces that are ending already count as deleted."""
    left = [each for each in _left(kube, owner, is_gone) if not each["metadata"].get("deletionTimestamp")]
    for each in left:
        kube.delete(each)
    return [each["metadata"]["name"] for each in left]


def delete_orphans_and_wait(kube: Kube, owner: Owner, is_gone: Callable[[str], bool]) -> list[str]:
    """The same, and return when all of it is gone, also what was ending already: until then its pods and claims hold devices."""
    names = delete_orphans(kube, owner, is_gone)
    left = _left(kube, owner, is_gone)

    def gone() -> None:
        left[:] = [each for each in left if _is_there(kube, each)]
        if left:
            raise NotYet("still there: " + "; ".join(_told(kube, each) for each in left))

    eventually(gone, "the end of what killed sessions left", _GONE, longest_pause=0.2)
    return names


def _left(kube: Kube, owner: Owner, is_gone: Callable[[str], bool]) -> list[Object]:
    return [
        each
        for api_version, kind in _KINDS
        for each in _ours(kube, api_version, kind, owner)
        if is_gone(each["metadata"]["labels"].get(PROCESS, ""))
    ]


def _ours(kube: Kube, api_version: str, kind: str, owner: Owner) -> list[Object]:
    try:
        return kube.list(api_version, kind, labelSelector=owner.selector)
    except UsageError:  # before Kubernetes 1.37 there are no DeviceTaintRules in v1
        return []


def _is_there(kube: Kube, each: Object) -> bool:
    found = kube.find(each["apiVersion"], each["kind"], each["metadata"]["name"])
    return found is not None and found["metadata"].get("uid") == each["metadata"].get("uid")


def _told(kube: Kube, each: Object) -> str:
    """Its name; of a namespace also who keeps it: pods, and claims with the devices that they hold."""
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
