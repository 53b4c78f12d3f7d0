"""Objects that a testbed shares with others: namespaces and default accounts. Used by installing and `down`."""

from __future__ import annotations

from testbed.errors import ApiError
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import Owner

SHARED_KINDS = ("Namespace", "ServiceAccount")


def is_shared(manifest: Object) -> bool:
    """Return True if an object may belong to others: a namespace, or the account that Kubernetes creates in each."""
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    return kind == "Namespace" or (kind, name) == ("ServiceAccount", "default")


def is_managed_by(found: Object, owner: Owner) -> bool:
    """Return True if the testbed manages fields of the object."""
    return any(each.get("manager") == owner.manager for each in found["metadata"].get("managedFields") or ())


def release_shared(kube: Kube, found: Object, owner: Owner) -> None:
    """Remove the fields that only this testbed manages, by applying the object without any fields.

    With its uid, an object that was deleted meanwhile is not created again.
    """
    identity = {key: found["metadata"][key] for key in ("name", "namespace", "uid") if found["metadata"].get(key)}
    empty = {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": identity}
    try:
        kube.apply(empty, manager=owner.manager, force=False)
    except ApiError as refused:
        if refused.status not in (404, 409):
            raise
