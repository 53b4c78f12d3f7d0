"""What processes of a run made and could not delete, because they were killed. The plugin's controller deletes it."""

from __future__ import annotations

from collections.abc import Callable

from testbed.errors import UsageError
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import PROCESS, Owner
from testbed.vocabulary.world import RESOURCE

# All else is in one of the namespaces.
_KINDS = (("v1", "Namespace"), (RESOURCE, "DeviceClass"), (RESOURCE, "DeviceTaintRule"))


def delete_leftovers(kube: Kube, owner: Owner, is_gone: Callable[[str], bool]) -> list[str]:
    """Delete what was made by processes that are gone, by their words; the names. Namespaces that are ending already count as deleted."""
    left = [
        each
        for api_version, kind in _KINDS
        for each in _ours(kube, api_version, kind, owner)
        if is_gone(each["metadata"]["labels"].get(PROCESS, "")) and not each["metadata"].get("deletionTimestamp")
    ]
    for each in left:
        kube.delete(each)
    return [each["metadata"]["name"] for each in left]


def _ours(kube: Kube, api_version: str, kind: str, owner: Owner) -> list[Object]:
    try:
        return kube.list(api_version, kind, labelSelector=owner.selector)
    except UsageError:  # before Kubernetes 1.37 there are no DeviceTaintRules in v1
        return []
