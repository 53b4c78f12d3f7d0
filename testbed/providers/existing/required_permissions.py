"""The permissions that the user of a kubeconfig needs, by --allow level. A test compares them with the roles in manifests/clusters/."""

from __future__ import annotations

from collections.abc import Iterator

from testbed import folders
from testbed.errors import TestbedError
from testbed.kube import permissions
from testbed.kube.client import Kube
from testbed.kube.permissions import Permission
from testbed.models.sections import Allow

_APPLY = ("create", "patch", "delete")
_Rights = dict[tuple[str, str], tuple[str, ...]]
_READ_ONLY: _Rights = {
    ("", "nodes"): ("list",),
    ("resource.k8s.io", "resourceslices"): ("list",),
}
_WORKLOADS: _Rights = {
    ("", "nodes"): ("get",),
    ("", "namespaces"): (*_APPLY, "get", "list"),
    ("", "serviceaccounts"): _APPLY,
    ("", "pods"): (*_APPLY, "get", "list", "watch"),
    ("", "pods/exec"): ("create", "get"),
    ("", "pods/log"): ("get",),
    ("", "pods/status"): ("patch",),
    ("", "events"): ("list", "watch"),
    ("", "resourcequotas"): (*_APPLY, "list", "watch"),
    ("apps", "daemonsets"): (*_APPLY, "list"),
    ("apps", "deployments"): (*_APPLY, "list"),
    ("apps", "statefulsets"): (*_APPLY, "list"),
    ("batch", "jobs"): (*_APPLY, "list"),
    ("node.k8s.io", "runtimeclasses"): (*_APPLY, "list"),
    ("resource.k8s.io", "deviceclasses"): (*_APPLY, "get", "list"),
    ("resource.k8s.io", "devicetaintrules"): (*_APPLY, "get", "list", "watch"),
    ("resource.k8s.io", "resourceclaims"): (*_APPLY, "get", "list", "watch"),
    ("resource.k8s.io", "resourceclaims/status"): ("patch",),
    ("resource.k8s.io", "resourceclaims/binding"): ("patch",),
    ("resource.k8s.io", "resourceclaims/driver"): ("arbitrary-node:patch",),
    ("resource.k8s.io", "resourceclaimtemplates"): (*_APPLY, "list"),
}
# Only who may impersonate can act as the driver's account; node-name is the claim of its token that names the node.
# The API server checks a ServiceAccount against `serviceaccounts`, although the header of the request is Impersonate-User.
_DRIVER: _Rights = {
    ("", "serviceaccounts"): ("impersonate",),
    ("", "groups"): ("impersonate",),
    ("authentication.k8s.io", "userextras/authentication.kubernetes.io/node-name"): ("impersonate",),
    ("authorization.k8s.io", "subjectaccessreviews"): ("create",),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): ("list",),
}
_RESTART: _Rights = {("", "pods/proxy"): ("get",)}
_ADDED = {
    Allow.READ_ONLY: _READ_ONLY,
    Allow.WORKLOADS: _WORKLOADS,
    Allow.DRIVER: _DRIVER,
    Allow.RESTART: _RESTART,
}


def of_level(level: Allow) -> frozenset[Permission]:
    """Return the permissions that the level needs, in all namespaces, because the names of test namespaces are generated."""
    return frozenset(_rights(level))


def check(kube: Kube, level: Allow, where: str) -> None:
    """Raise an error with all permissions that the user lacks, if any."""
    lacking = permissions.missing_permissions(kube, of_level(level))
    if lacking:
        role = folders.data("manifests") / "clusters" / f"judge-{level}.yaml"
        lower = " or --allow read-only" if level is not Allow.READ_ONLY else ""
        raise TestbedError(
            f"the user of {where} lacks permissions that --allow {level} needs:\n"
            + "\n".join(f"    {line}" for line in permissions.summarize(lacking)),
            hint=f"let an administrator apply {role} and bind it to the user, as described in that file{lower}",
        )


def _rights(level: Allow) -> Iterator[Permission]:
    for each, added in _ADDED.items():
        for (group, resource), verbs in added.items():
            yield from (Permission(verb, group, resource) for verb in verbs)
        if each is level:
            return
