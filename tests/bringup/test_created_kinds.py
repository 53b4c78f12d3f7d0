"""What a testbed may have made, by its level and its driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.bringup.created_kinds import making
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
def test_the_kinds_of_its_level_and_of_its_drivers_manifests(driver: str, also: set[str]) -> None:
    """Accounts are listed by no level: those of tests go with their namespaces."""
    made = making(ExistingProvider(), _record(driver=driver))
    assert {each.kind for each in (PODS, ACCOUNTS, ROLES, SECRETS) if made.may_hold(each)} == {"Pod"} | also
    assert made.may_be_in("resource.k8s.io/v1")
    assert made.may_be_in("rbac.authorization.k8s.io/v1") is bool(also)
    assert not made.may_be_in("metrics.k8s.io/v1beta1")


def test_where_nobody_knows_any_more_it_may_be_anything(tmp_path: Path) -> None:
    record = _record()
    record["spec"]["driver"] = str(tmp_path / "gone.yaml")
    for each in (record, {"spec": {"of": "another version"}}):
        made = making(ExistingProvider(), each)
        assert made.may_hold(SECRETS)
        assert made.may_be_in("metrics.k8s.io/v1beta1")
