"""The ValidatingAdmissionPolicies for ResourceSlices: why one of them may protect nothing. Pure, except for `read`; for Account."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator

from testbed.errors import ApiError
from testbed.kube.client import Kube, Object
from testbed.kube.features import DRA
from testbed.kube.ownership import DRIVER

_API = "admissionregistration.k8s.io/v1"
_NOT_READABLE = (403, 404)
_ACCOUNT = re.compile(r"system:serviceaccount:[a-z0-9-]+:[a-z0-9.-]+")


def read(kube: Kube, driver: str) -> list[Object]:
    """Return the policies for ResourceSlices that the driver's installation created or that mention the driver's name."""
    try:
        found = kube.list(_API, "ValidatingAdmissionPolicy")
    except ApiError as refused:
        if refused.status not in _NOT_READABLE:
            raise
        return []
    return [each for each in found if any(_rules(each)) and _is_of(each, driver)]


def problems(policies: list[Object], served: Collection[str], user: str) -> Iterator[str]:
    """Describe the policies that match no served version of resource.k8s.io, or only other accounts than `user`."""
    for policy in policies:
        name = policy["metadata"]["name"]
        versions = sorted({version for rule in _rules(policy) for version in rule.get("apiVersions") or ()})
        if not {"*", *served}.intersection(versions):
            yield (
                f"ValidatingAdmissionPolicy {name} matches only {', '.join(versions)} of {DRA}, "
                f"and the API server serves {', '.join(served)}"
            )
        accounts = sorted(set(_ACCOUNT.findall(json.dumps(policy["spec"]))))
        if accounts and user not in accounts:
            yield f"ValidatingAdmissionPolicy {name} is for {', '.join(accounts)}, and the driver's account is {user}"


def _rules(policy: Object) -> Iterator[Object]:
    """Yield the rules for ResourceSlices."""
    for rule in (policy["spec"].get("matchConstraints") or {}).get("resourceRules") or ():
        resources = set(rule.get("resources") or ())
        if {"*", DRA}.intersection(rule.get("apiGroups") or ()) and resources & {"*", "*/*", "resourceslices"}:
            yield rule


def _is_of(policy: Object, driver: str) -> bool:
    annotations = policy["metadata"].get("annotations") or {}
    return annotations.get(DRIVER) == driver or driver in json.dumps([policy["metadata"]["name"], policy["spec"]])
