"""What the user of a kubeconfig may do, asked of the API server beforehand, so that all that is missing can be said at once."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from testbed.kube.client import Kube

_REVIEWS = "/apis/authorization.k8s.io/v1"


@dataclass(frozen=True, order=True)
class Permission:
    """A verb on a resource (`pods/log` for a part of it), in one namespace or in all."""

    verb: str
    group: str
    resource: str
    namespace: str = ""

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}{where}"


def summarize(rights: Iterable[Permission]) -> list[str]:
    """Rights for people: a line for each resource, with the verbs on it."""
    verbs: dict[str, list[str]] = {}
    for each in sorted(set(rights)):
        verbs.setdefault(str(replace(each, verb="")).strip(), []).append(each.verb)
    return [f"{', '.join(verbs[resource])} {resource}" for resource in sorted(verbs)]


def missing_permissions(kube: Kube, wanted: Iterable[Permission]) -> list[Permission]:
    """Those of the rights that the user does not have, sorted."""
    by_namespace: dict[str, list[Permission]] = {}
    for each in sorted(set(wanted)):
        by_namespace.setdefault(each.namespace, []).append(each)
    return [right for namespace, rights in by_namespace.items() for right in _missing(kube, namespace, rights)]


def _missing(kube: Kube, namespace: str, wanted: list[Permission]) -> list[Permission]:
    # In a namespace that nobody has heard of only those rights count that hold everywhere.
    status = _review(kube, "selfsubjectrulesreviews", {"namespace": namespace or f"dra-testbed-{secrets.token_hex(4)}"})
    rules = status.get("resourceRules") or []
    lacking = [each for each in wanted if not any(_grants(rule, each) for rule in rules)]
    if not status.get("incomplete"):
        return lacking
    # An authorizer that cannot list its rules still answers a single question.
    return [each for each in lacking if not _allowed(kube, each)]


def _allowed(kube: Kube, right: Permission) -> bool:
    resource, _, subresource = right.resource.partition("/")
    asked = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        **({"subresource": subresource} if subresource else {}),
        **({"namespace": right.namespace} if right.namespace else {}),
    }
    return bool(_review(kube, "selfsubjectaccessreviews", {"resourceAttributes": asked}).get("allowed"))


def _review(kube: Kube, plural: str, spec: dict[str, Any]) -> dict[str, Any]:
    kind = {"selfsubjectrulesreviews": "SelfSubjectRulesReview", "selfsubjectaccessreviews": "SelfSubjectAccessReview"}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind[plural], "metadata": {}, "spec": spec}
    return dict(kube.request("POST", f"{_REVIEWS}/{plural}", body=body)["status"])


def _grants(rule: dict[str, Any], right: Permission) -> bool:
    if rule.get("resourceNames"):  # it holds for some objects only
        return False
    part = right.resource.partition("/")[2]
    resources = {"*", right.resource, *({f"*/{part}"} if part else set())}
    return (
        bool({"*", right.verb} & set(rule.get("verbs") or ()))
        and bool({"*", right.group} & set(rule.get("apiGroups") or ()))
        and bool(resources & set(rule.get("resources") or ()))
    )
