"""Checks the permissions of a kubeconfig's user in advance, so that all missing ones are reported at once."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from testbed.kube.client import Kube

_REVIEWS = "/apis/authorization.k8s.io/v1"


@dataclass(frozen=True, order=True)
class Permission:
    """A verb on a resource or subresource (`pods/log`), in one namespace or in all."""

    verb: str
    group: str
    resource: str
    namespace: str = ""

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}{where}"


def summarize(permissions: Iterable[Permission]) -> list[str]:
    """Return a line for each resource, with the verbs on it."""
    verbs: dict[str, list[str]] = {}
    for each in sorted(set(permissions)):
        verbs.setdefault(str(replace(each, verb="")).strip(), []).append(each.verb)
    return [f"{', '.join(verbs[resource])} {resource}" for resource in sorted(verbs)]


def missing_permissions(kube: Kube, wanted: Iterable[Permission]) -> list[Permission]:
    """Return the permissions that the user lacks, sorted."""
    by_namespace: dict[str, list[Permission]] = {}
    for each in sorted(set(wanted)):
        by_namespace.setdefault(each.namespace, []).append(each)
    return [
        each for namespace, wanted_there in by_namespace.items() for each in _missing(kube, namespace, wanted_there)
    ]


def _missing(kube: Kube, namespace: str, wanted: list[Permission]) -> list[Permission]:
    # In a namespace that does not exist, a user has only the permissions for all namespaces.
    status = _review(kube, "selfsubjectrulesreviews", {"namespace": namespace or f"dra-testbed-{secrets.token_hex(4)}"})
    rules = status.get("resourceRules") or []
    lacking = [each for each in wanted if not any(_grants(rule, each) for rule in rules)]
    if not status.get("incomplete"):
        return lacking
    # An authorizer that cannot list its rules still answers for a single permission.
    return [each for each in lacking if not _allowed(kube, each)]


def _allowed(kube: Kube, permission: Permission) -> bool:
    resource, _, subresource = permission.resource.partition("/")
    attributes = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": resource,
        **({"subresource": subresource} if subresource else {}),
        **({"namespace": permission.namespace} if permission.namespace else {}),
    }
    return bool(_review(kube, "selfsubjectaccessreviews", {"resourceAttributes": attributes}).get("allowed"))


def _review(kube: Kube, plural: str, spec: dict[str, Any]) -> dict[str, Any]:
    kind = {"selfsubjectrulesreviews": "SelfSubjectRulesReview", "selfsubjectaccessreviews": "SelfSubjectAccessReview"}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind[plural], "metadata": {}, "spec": spec}
    return dict(kube.request("POST", f"{_REVIEWS}/{plural}", body=body)["status"])


def _grants(rule: dict[str, Any], permission: Permission) -> bool:
    if rule.get("resourceNames"):  # only for certain objects
        return False
    subresource = permission.resource.partition("/")[2]
    resources = {"*", permission.resource, *({f"*/{subresource}"} if subresource else set())}
    return (
        bool({"*", permission.verb} & set(rule.get("verbs") or ()))
        and bool({"*", permission.group} & set(rule.get("apiGroups") or ()))
        and bool(resources & set(rule.get("resources") or ()))
    )
