"""Objects that are there for everybody: a driver's manifests add to them, and that is taken back. For installing and `down`."""

from __future__ import annotations

from testbed.errors import ApiError
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import Owner

SHARED_KINDS = ("Namespace", "ServiceAccount")


def is_shared(manifest: Object) -> bool:
    """Whether the object may be somebody else's: a namespace, or the account that Kubernetes makes in each."""
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    return kind == "Namespace" or (kind, name) == ("ServiceAccount", "default")


def is_managed_by(found: Object, owner: Owner) -> bool:
    """Whether something in the object is there because that testbed applied it."""
    return any(each.get("manager") == owner.manager for each in found["metadata"].get("managedFields") or ())


def release_shared(kube: Kube, found: Object, owner: Owner) -> None:
    """Take out what that testbed alone put in: who applies nothing owns nothing, and the API server removes what nobody owns.

    With the uid it means the object that was seen: one that is gone is not made anew.
    """
    name = {key: found["metadata"][key] for key in ("name", "namespace", "uid") if found["metadata"].get(key)}
    bare = {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": name}
    try:
        kube.apply(bare, manager=owner.manager, force=False)
    except ApiError as refused:
        if refused.status not in (404, 409):
            raise
