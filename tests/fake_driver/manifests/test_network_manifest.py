"""The manifest of the network driver grants only the permissions that it uses, and mounts no folder of a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.rendering import render_file

ROOT = Path(__file__).parents[3] / "manifests"
NAME = "gpu.dra-testbed.example"
VARIABLES: dict[str, object] = {"image": "localhost/driver:1", "driver_name": NAME, "namespace": "here"}


def _objects(*, has_pools: bool, attaches: bool) -> list[Any]:
    groups = [{"kind": "gpu", "count": 1, **({"attaching": {"seconds": 1}} if attaches else {})}]
    spec = {"devices": groups, "pools": [{"name": "fabric", "allNodes": True, "devices": []}] if has_pools else []}
    variables = {**VARIABLES, "hardware": yaml.safe_dump({"spec": spec})}
    text = render_file(ROOT / "fake_driver/network.yaml", variables, allow_unused=True)
    return [one for one in yaml.safe_load_all(text) if one]


ALL = _objects(has_pools=True, attaches=False)
OBJECTS: dict[str, Any] = {one["kind"]: one for one in ALL}


def test_the_permissions_are_those_that_it_uses() -> None:
    permissions = {
        (resource, verb)
        for rule in OBJECTS["ClusterRole"]["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert permissions == {
        ("resourceclaims", "list"),
        ("resourceclaims", "watch"),
        ("resourceclaims/status", "patch"),
        ("resourceclaims/driver", "arbitrary-node:patch"),
        ("deviceclasses", "get"),
        *(("resourceslices", verb) for verb in ("list", "watch", "create", "update", "delete")),
    }


def test_permissions_are_limited_to_this_driver_where_possible() -> None:
    limited = [rule for rule in OBJECTS["ClusterRole"]["rules"] if rule.get("resourceNames") == [NAME]]
    assert [rule["resources"] for rule in limited] == [["resourceclaims/driver"], ["deviceclasses"]]


def test_it_does_not_run_as_root_and_cannot_access_its_node() -> None:
    spec = OBJECTS["Deployment"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not any("hostPath" in volume for volume in spec["volumes"])
    assert {"name": "FAKE_DRIVER_ROLE", "value": "network"} in container["env"]


def test_its_pods_are_not_selected_as_node_drivers() -> None:
    """The driver file's selector must match only the pods of the node driver."""
    driver_file = yaml.safe_load((ROOT / "drivers/fake-gpu.yaml").read_text())
    labels = OBJECTS["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert driver_file["spec"]["pods"]["selector"] != f"app={labels['app']}"


@pytest.mark.parametrize(("has_pools", "attaches"), [(True, True), (True, False), (False, True), (False, False)])
def test_it_is_installed_only_for_hardware_that_needs_it(has_pools: bool, attaches: bool) -> None:
    assert bool(_objects(has_pools=has_pools, attaches=attaches)) is (has_pools or attaches)


def test_each_policy_is_bound_and_matches_its_service_account() -> None:
    account = OBJECTS["ServiceAccount"]["metadata"]["name"]
    policies = [one for one in ALL if one["kind"] == "ValidatingAdmissionPolicy"]
    bound = {one["spec"]["policyName"] for one in ALL if one["kind"] == "ValidatingAdmissionPolicyBinding"}
    assert bound == {policy["metadata"]["name"] for policy in policies}
    for policy in policies:
        (condition,) = policy["spec"]["matchConditions"]
        assert condition["expression"].endswith(f"'system:serviceaccount:here:{account}'")
