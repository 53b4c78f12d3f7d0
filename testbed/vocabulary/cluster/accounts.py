"""The word `account`: what the driver's ServiceAccount may do, asked of the API server, and tried in its name. Nothing is ever made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from testbed.drivers.ready import driver_pods
from testbed.errors import ApiError, DriverFailed
from testbed.kube.client import Object
from testbed.vocabulary.world import RESOURCE, World

_REVIEW = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_NODE = "authentication.kubernetes.io/node-name"
_REFUSED = (403, 422)  # a policy chooses
_SYSTEM = "kube-system"  # there is the most to take
_WRITING = ("create", "update", "patch", "delete", "deletecollection")
_TOO_MUCH = "a role that is bound to it, or to a group that it is in, allows more than a driver needs"
_TOO_LITTLE = "no ClusterRole with that is bound to it; its pods would be refused as soon as they work"


@dataclass(frozen=True)
class Account:
    """The account of the driver's pods, on one node with one of them."""

    world: World

    @property
    def pod(self) -> Object:
        """The pod that it is looked at with."""
        found = driver_pods(self.world.kube, self.world.driver_file)
        placed = [each for each in found if each["spec"].get("nodeName")]
        if not placed:
            raise DriverFailed("no node has a pod of the driver", hint="look at spec.pods of the driver file")
        return min(placed, key=lambda each: str(each["spec"]["nodeName"]))

    @property
    def node(self) -> str:
        """The node of that pod."""
        return str(self.pod["spec"]["nodeName"])

    def may(self, *deeds: str) -> frozenset[str]:
        """Which of these it may do in every namespace. A deed is `verb resource[.group] [name]`, as in `get pods/log` or `list nodes`."""
        pod = self.pod
        return frozenset(deed for deed in deeds if self._allowed(pod, deed))

    def allowed_somewhere(self, *deeds: str) -> frozenset[str]:
        """Which of these, about what is in namespaces, it may do in every namespace, in its own, or in kube-system: a Role is enough."""
        pod = self.pod
        places = ("", pod["metadata"]["namespace"], _SYSTEM)
        return frozenset(deed for deed in deeds if any(self._allowed(pod, deed, place) for place in places))

    def should_be_allowed(self, *deeds: str) -> None:
        """Demand that it may do these in every namespace."""
        lacking = frozenset(deeds) - self.may(*deeds)
        if lacking:
            raise DriverFailed(_wrong(self.pod, "allowed", "it may not", lacking, _TOO_LITTLE))

    def should_be_refused(self, *deeds: str, anywhere: Iterable[str] = (), writing: Iterable[str] = ()) -> None:
        """Demand that it may do none of these in every namespace, and of those `anywhere` not even in its own or in kube-system.

        Nor may it make, change or delete the resources `writing` in any of these.
        """
        written = [f"{verb} {each}" for each in writing for verb in _WRITING]
        allowed = self.may(*deeds) | self.allowed_somewhere(*anywhere, *written)
        if allowed:
            raise DriverFailed(_wrong(self.pod, "refused", "it may", allowed, _TOO_MUCH))

    def refusal_to_publish(self, *, node: str = "", driver: str = "") -> str:
        """Why it may not publish a slice for a node, or for the whole cluster; '' where it may. `driver` is another one's name."""
        name = driver or self.world.driver_file.driver
        place = {"nodeName": node} if node else {"allNodes": True}
        pool = {"name": "dra-testbed-tries", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": name, "pool": pool, **place, "devices": []}
        slice_ = {
            "apiVersion": RESOURCE,
            "kind": "ResourceSlice",
            "metadata": {"generateName": "dra-testbed-tries-"},
            "spec": spec,
        }
        return self._tried("POST", _SLICES, slice_)

    def refusals_to_change_slices_of_others(self) -> frozenset[str]:
        """Why it may not change each slice of the driver that is for another node; '' among them where it may."""
        return frozenset(self._tried("PUT", _path(each), {**each, "apiVersion": RESOURCE}) for each in self._others)

    def refusals_to_delete_slices_of_others(self) -> frozenset[str]:
        """Why it may not delete each slice of the driver that is for another node; '' among them where it may."""
        return frozenset(self._tried("DELETE", _path(each), None) for each in self._others)

    @property
    def _others(self) -> list[Object]:
        """The slices of the driver that are for other nodes."""
        return [each for each in self.world.slices() if each["spec"].get("nodeName") not in ("", None, self.node)]

    def _allowed(self, pod: Object, deed: str, namespace: str = "") -> bool:
        verb, what, *name = deed.split()
        resource, _, group = what.partition(".")
        resource, _, part = resource.partition("/")
        thing = {"group": group, "resource": resource, "subresource": part, "name": " ".join(name)}
        asked = {"verb": verb, "namespace": namespace, **thing}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": _user(pod), "groups": list(_groups(pod)), "resourceAttributes": asked},
        }
        return bool(self.world.kube.request("POST", _REVIEW, body=body)["status"].get("allowed"))

    def _tried(self, method: str, path: str, body: Any) -> str:
        pod = self.pod
        headers = [("Impersonate-User", _user(pod)), (f"Impersonate-Extra-{_NODE.replace('/', '%2F')}", self.node)]
        headers += [("Impersonate-Group", each) for each in _groups(pod)]
        try:
            self.world.kube.request(method, path, query={"dryRun": "All"}, body=body, headers=headers)
        except ApiError as refused:
            if refused.status not in _REFUSED:
                raise
            return refused.message
        return ""


def _wrong(pod: Object, wanted: str, found: str, deeds: Iterable[str], cause: str) -> str:
    return f"expected {_user(pod)} to be {wanted}; {found}: {', '.join(sorted(deeds))}\n  likely cause: {cause}"


def _path(slice_: Object) -> str:
    return f"{_SLICES}/{slice_['metadata']['name']}"


def _user(pod: Object) -> str:
    return f"system:serviceaccount:{pod['metadata']['namespace']}:{pod['spec'].get('serviceAccountName', 'default')}"


def _groups(pod: Object) -> Iterable[str]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{pod['metadata']['namespace']}", "system:authenticated")
