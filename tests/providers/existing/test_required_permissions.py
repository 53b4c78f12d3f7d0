"""The required permissions are those of the shipped roles, and they suffice for every manifest of the suites."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import folders
from testbed.kube.permissions import Permission
from testbed.models.sections import Allow
from testbed.providers.existing.required_permissions import of_level

ROLES = folders.data("manifests") / "clusters"
SUITES = folders.data("manifests") / "suites"


def _role(level: Allow) -> Any:
    return yaml.safe_load((ROLES / f"judge-{level}.yaml").read_text())


def _granted(level: Allow) -> set[Permission]:
    return {
        Permission(verb, group, resource)
        for rule in _role(level)["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("level", Allow)
def test_a_role_grants_exactly_the_permissions_of_its_level(level: Allow) -> None:
    assert _granted(level) == of_level(level)
    assert "*" not in str(_role(level))


@pytest.mark.parametrize("level", Allow)
def test_a_role_describes_how_to_bind_it(level: Allow) -> None:
    text = (ROLES / f"judge-{level}.yaml").read_text()
    assert f"kubectl apply -f judge-{level}.yaml" in text
    assert f"--clusterrole={_role(level)['metadata']['name']}" in text


def test_each_level_includes_the_permissions_of_the_previous_one() -> None:
    assert of_level(Allow.READ_ONLY) < of_level(Allow.WORKLOADS) < of_level(Allow.DRIVER) < of_level(Allow.RESTART)


def test_the_account_of_the_driver_is_a_service_account() -> None:
    """The API server authorizes `Impersonate-User: system:serviceaccount:…` as serviceaccounts, not as users."""
    acting = {each.resource for each in of_level(Allow.DRIVER) if each.verb == "impersonate"}
    assert acting == {"serviceaccounts", "groups", "userextras/authentication.kubernetes.io/node-name"}


@pytest.mark.parametrize("path", sorted(SUITES.rglob("*.yaml")), ids=str)
def test_the_permissions_suffice_for_every_object_of_a_scenario(path: Path) -> None:
    """If this fails, a suite uses a new kind: add it to required_permissions.py and to the roles."""
    kinds = re.findall(r"^apiVersion: (?:([\w.]+)/)?\w+\nkind: (\w+)", path.read_text(), re.MULTILINE)
    assert kinds
    for group, kind in kinds:
        plural = f"{kind.lower()}{'es' if kind.endswith('s') else 's'}"
        needed = {Permission(verb, group, plural) for verb in ("create", "patch", "delete", "list")}
        assert needed <= of_level(Allow.WORKLOADS)
