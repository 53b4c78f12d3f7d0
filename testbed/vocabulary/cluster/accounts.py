"""The permissions of the driver's ServiceAccount, from SubjectAccessReviews and from dry runs with impersonation. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from testbed.drivers.ready import driver_pods
from testbed.errors import ApiError, DriverFailed, NothingToJudge, TestbedError
from testbed.kube import features, messages
from testbed.kube.client import Object
from testbed.vocabulary.checked_sets import CheckedSet
from testbed.vocabulary.cluster import admission_policies
from testbed.vocabulary.world import RESOURCE, World

_REVIEW = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_NODE = "authentication.kubernetes.io/node-name"
_REFUSED = (403, 422)  # an admission policy may use either
_SYSTEM = "kube-system"  # the namespace where permissions are most dangerous
_PUBLISH = "create resourceslices.resource.k8s.io"
_NEEDED = ("get resourceclaims.resource.k8s.io", _PUBLISH)  # one of them by every driver
_WRITING = ("create", "update", "patch", "delete", "deletecollection")
_TOO_MUCH = "a role that is bound to the account, or to one of its groups, allows more than a driver needs"
_NO_POLICY = (
    "no ValidatingAdmissionPolicy for ResourceSlices is of this driver; RBAC alone cannot restrict a pod to its node"
)
_MAY_IMPERSONATE = "the account of the kubeconfig needs the verb impersonate for serviceaccounts, groups and userextras"
_TOO_LITTLE = "no ClusterRole that allows it is bound to the account; requests of the driver's pods would be rejected"


@dataclass(frozen=True)
class Account:
    """The account of the driver's pods, as used by one pod on one node."""

    world: World

    @property
    def pod(self) -> Object:
        """Return the driver's pod on the first node; DriverFailed if there is none."""
        found = driver_pods(self.world.kube, self.world.driver_file)
        bound = [each for each in found if each["spec"].get("nodeName")]
        if not bound:
            raise DriverFailed("no pod of the driver is bound to a node", hint="check spec.pods of the driver file")
        return min(bound, key=lambda each: str(each["spec"]["nodeName"]))

    @property
    def node(self) -> str:
        """Return the node of that pod."""
        return str(self.pod["spec"]["nodeName"])

    def allowed(self, *actions: str) -> frozenset[str]:
        """Return the actions that are allowed cluster-wide.

        An action is `verb resource[.group] [name]`, for example `get pods/log` or `list nodes`.
        """
        pod = self.pod
        return frozenset(action for action in actions if self._is_allowed(pod, action))

    def allowed_somewhere(self, *actions: str) -> frozenset[str]:
        """Return the actions that are allowed cluster-wide, in the driver's namespace, or in kube-system."""
        return self._allowed_in(("", self.pod["metadata"]["namespace"], _SYSTEM), actions)

    def should_be_allowed(self, *actions: str) -> None:
        """Require that all actions are allowed cluster-wide. An account need not publish slices that another one publishes."""
        missing = frozenset(actions) - self.allowed(*actions)
        if missing and not (missing == {_PUBLISH} and self._own):
            raise DriverFailed(_error(self.pod, "to be allowed to", missing, _TOO_LITTLE))

    def should_be_refused(
        self,
        *actions: str,
        elsewhere: Iterable[str] = (),
        anywhere: Iterable[str] = (),
        writing: Iterable[str] = (),
    ) -> None:
        """Require that none of the actions is allowed cluster-wide, and that the account is one that a driver can use.

        Actions in `elsewhere` must not be allowed in kube-system either; those in `anywhere`, and creating, changing and deleting the
        resources in `writing`, neither there nor in the driver's namespace.
        """
        if not self.allowed(*_NEEDED):  # every action is refused to an account without permissions
            if self._own:
                raise NothingToJudge(
                    f"the driver works, although {_user(self.pod)} may neither {' nor '.join(_NEEDED)}"
                )
            raise DriverFailed(
                f"expected {_user(self.pod)} to be allowed to {' or '.join(_NEEDED)}",
                hint="is this the account of the driver? check spec.pods of the driver file",
            )
        written = [f"{verb} {each}" for each in writing for verb in _WRITING]
        surplus = self.allowed(*actions) | self._allowed_in(("", _SYSTEM), elsewhere)
        surplus |= self.allowed_somewhere(*anywhere, *written)
        if surplus:
            raise DriverFailed(_error(self.pod, "not to be allowed to", surplus, _TOO_MUCH))

    def should_publish_its_own_slices(self) -> None:
        """Require that the account may publish slices of its own node; NothingToJudge if another account publishes them."""
        refusal = self.refusal_to_publish(node=self.node)
        if refusal and self._own and not self.allowed(_PUBLISH):
            raise NothingToJudge(f"another account than {_user(self.pod)} publishes the driver's slices: {refusal}")
        if refusal:
            raise DriverFailed(
                f"expected {_user(self.pod)} to be allowed to publish a slice of its node {self.node}\n  last seen: {refusal}"
            )

    def should_not_publish(self, *, node: str = "", driver: str = "") -> None:
        """Require that a new slice is refused: of another node, or without `node` of the whole cluster, or of another driver."""
        place = f"a slice of node {node}" if node else "a slice of the whole cluster"
        if not self.refusal_to_publish(node=node, driver=driver):
            self._fail_unprotected(f"to publish {place}" + (f" for driver {driver}" if driver else ""))

    def should_not_write_slices_of_others(self) -> None:
        """Require that the account may neither change nor delete the driver's slices of other nodes."""
        if not self._others:
            raise DriverFailed("the driver publishes no slice for another node")
        if "" in self.refusals_to_change_slices_of_others():
            self._fail_unprotected("to change a slice of another node")
        if "" in self.refusals_to_delete_slices_of_others():
            self._fail_unprotected("to delete a slice of another node")

    @property
    def policy_problems(self) -> tuple[str, ...]:
        """Describe why the driver's admission policies for ResourceSlices match none of its requests; NothingToJudge without policies."""
        if not self._policies:
            raise NothingToJudge("the driver installs no ValidatingAdmissionPolicy for ResourceSlices")
        return self._policy_problems

    def refusal_to_publish(self, *, node: str = "", driver: str = "") -> str:
        """Return the error for a new slice of a node, or of the whole cluster; '' if it is accepted. `driver` is another driver's name.

        Slice and pool are named as the driver's own: an admission policy may allow no other names.
        """
        name = driver or self.world.driver_file.driver
        place = {"nodeName": node} if node else {"allNodes": True}
        pool = {"name": self._pool, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": name, "pool": pool, **place, "devices": []}
        slice_ = {
            "apiVersion": RESOURCE,
            "kind": "ResourceSlice",
            "metadata": {"generateName": f"{self.node}-{name}-"},  # as k8s.io/dynamic-resource-allocation does
            "spec": spec,
        }
        return self._dry_run("POST", _SLICES, slice_)

    def refusals_to_change_slices_of_others(self) -> CheckedSet[str]:
        """Return the errors for updates of the driver's slices of other nodes; '' for an update that is accepted."""
        return CheckedSet(self._dry_run("PUT", _path(each), {**each, "apiVersion": RESOURCE}) for each in self._others)

    def refusals_to_delete_slices_of_others(self) -> CheckedSet[str]:
        """Return the errors for deletions of the driver's slices of other nodes; '' for a deletion that is accepted."""
        return CheckedSet(self._dry_run("DELETE", _path(each), None) for each in self._others)

    def _fail_unprotected(self, action: str) -> NoReturn:
        """Blame the driver's installation, with the policies that should have refused an action."""
        names = ", ".join(each["metadata"]["name"] for each in self._policies)
        without = (
            f"ValidatingAdmissionPolicy {names} accepts it, or has no binding that denies" if names else _NO_POLICY
        )
        cause = "; ".join(self._policy_problems) or without
        raise DriverFailed(f"expected {_user(self.pod)} not to be allowed {action}\n  likely cause: {cause}")

    @property
    def _policies(self) -> list[Object]:
        return admission_policies.read(self.world.kube, self.world.driver_file.driver)

    @property
    def _policy_problems(self) -> tuple[str, ...]:
        served = features.resource_versions(self.world.kube)
        return tuple(admission_policies.problems(self._policies, served, _user(self.pod)))

    @property
    def _own(self) -> list[Object]:
        """Return the driver's slices of the pod's node."""
        return [each for each in self.world.slices() if each["spec"].get("nodeName") == self.node]

    @property
    def _pool(self) -> str:
        """Return the name of the pool that the driver publishes for the pod's node; that of the node if there is none."""
        return next((str(each["spec"]["pool"]["name"]) for each in self._own), self.node)

    @property
    def _others(self) -> list[Object]:
        """Return the driver's slices of other nodes."""
        return [each for each in self.world.slices() if each["spec"].get("nodeName") not in ("", None, self.node)]

    def _allowed_in(self, namespaces: Iterable[str], actions: Iterable[str]) -> frozenset[str]:
        """Return the actions that are allowed in one of these namespaces; '' is all of them."""
        pod, where = self.pod, tuple(namespaces)
        return frozenset(action for action in actions if any(self._is_allowed(pod, action, each) for each in where))

    def _is_allowed(self, pod: Object, action: str, namespace: str = "") -> bool:
        verb, what, *name = action.split()
        resource, _, group = what.partition(".")
        resource, _, subresource = resource.partition("/")
        target = {"group": group, "resource": resource, "subresource": subresource, "name": " ".join(name)}
        attributes = {"verb": verb, "namespace": namespace, **target}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": _user(pod), "groups": list(_groups(pod)), "resourceAttributes": attributes},
        }
        return bool(self.world.kube.request("POST", _REVIEW, body=body)["status"].get("allowed"))

    def _dry_run(self, method: str, path: str, body: Any) -> str:
        pod = self.pod
        headers = [("Impersonate-User", _user(pod)), (f"Impersonate-Extra-{_NODE.replace('/', '%2F')}", self.node)]
        headers += [("Impersonate-Group", each) for each in _groups(pod)]
        try:
            self.world.kube.request(method, path, query={"dryRun": "All"}, body=body, headers=headers)
        except ApiError as refused:
            if refused.status not in _REFUSED:
                raise
            if messages.CANNOT_IMPERSONATE in refused.message:  # it says nothing about the driver's account
                raise TestbedError(f"cannot act as {_user(pod)}: {refused.message}", hint=_MAY_IMPERSONATE) from refused
            return refused.message
        return ""


def _error(pod: Object, expected: str, actions: Iterable[str], cause: str) -> str:
    return f"expected {_user(pod)} {expected} {', '.join(sorted(actions))}\n  likely cause: {cause}"


def _path(slice_: Object) -> str:
    return f"{_SLICES}/{slice_['metadata']['name']}"


def _user(pod: Object) -> str:
    return f"system:serviceaccount:{pod['metadata']['namespace']}:{pod['spec'].get('serviceAccountName', 'default')}"


def _groups(pod: Object) -> Iterable[str]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{pod['metadata']['namespace']}", "system:authenticated")
