"""Which kinds of objects a testbed may have created, by its --allow level and its driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.bringup.created_kinds import created_kinds
from testbed.kube.client import Resource
from testbed.models.config import config_to_record, effective
from testbed.providers.existing import ExistingProvider

PODS = Resource("v1", "pods", "Pod", namespaced=True)
ACCOUNTS = Resource("v1", "serviceaccounts", "ServiceAccount", namespaced=True)
ROLES = Resource("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", namespaced=False)
SECRETS = Resource("v1", "secrets", "Secret", namespaced=True)


def _record(**flags: Any) -> dict[str, Any]:
    return config_to_record(effective(None, {"provider": "existing", **flags}))


@pytest.mark.parametrize(("driver", "also"), [("none", set()), ("fake-gpu", {ACCOUNTS.kind, ROLES.kind})])
def test_the_kinds_are_those_of_the_level_and_of_the_drivers_manifests(driver: str, also: set[str]) -> None:
    """No level includes service accounts: those of tests are deleted with their namespaces."""
    kinds = created_kinds(ExistingProvider(), _record(driver=driver))
    assert {each.kind for each in (PODS, ACCOUNTS, ROLES, SECRETS) if kinds.include(each)} == {"Pod"} | also
    assert kinds.include_group("resource.k8s.io/v1")
    assert kinds.include_group("rbac.authorization.k8s.io/v1") is bool(also)
    assert not kinds.include_group("metrics.k8s.io/v1beta1")


def test_if_the_record_or_the_driver_file_is_unreadable_all_kinds_are_possible(tmp_path: Path) -> None:
    record = _record()
    record["spec"]["driver"] = str(tmp_path / "gone.yaml")
    for each in (record, {"spec": {"of": "another version"}}):
        kinds = created_kinds(ExistingProvider(), each)
        assert kinds.include(SECRETS)
        assert kinds.include_group("metrics.k8s.io/v1beta1")
