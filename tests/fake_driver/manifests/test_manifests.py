"""The manifests of the fake driver render, are consistent, and grant no permission that the driver does not use."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from fake_driver.hardware import hardware_file, pools
from fake_driver.mutants.selection import PERMISSION_MUTANTS
from fake_driver.preparing import opaque_configuration
from testbed.rendering import render_file

ROOT = Path(__file__).parents[3] / "manifests"
DRIVER_FILES = {name: yaml.safe_load((ROOT / f"drivers/{name}.yaml").read_text()) for name in ("fake-gpu", "fake-nic")}
DRIVER_FILE = DRIVER_FILES["fake-gpu"]
FABRIC: dict[str, object] = {"hardware": (ROOT / "hardware/fabric.yaml").read_text()}
Object = dict[str, Any]


def rendered(driver: str = "fake-gpu", **more: object) -> list[Object]:
    """Return all objects in the order in which they are applied."""
    spec = DRIVER_FILES[driver]["spec"]
    paths = [ROOT / "drivers" / relative for relative in spec["install"]["manifests"]]
    variables = {
        "image": "localhost/driver:1",
        "driver_name": spec["driver"],
        "namespace": spec["pods"]["namespace"],
        "hardware": (ROOT / "hardware/gpus.yaml").read_text(),
        **spec["install"].get("variables", {}),
        **more,
    }
    texts = [render_file(path, variables, allow_unused=True) for path in paths]
    return [document for text in texts for document in yaml.safe_load_all(text) if document]


def find(kind: str, driver: str = "fake-gpu", **more: object) -> Object:
    (found,) = (one for one in rendered(driver, **more) if one["kind"] == kind)
    return found


def container(driver: str = "fake-gpu", **more: object) -> Object:
    (found,) = find("DaemonSet", driver, **more)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_every_template_is_installed() -> None:
    installed = {Path(relative).name for relative in DRIVER_FILE["spec"]["install"]["manifests"]}
    assert installed == {path.name for path in (ROOT / "fake_driver").glob("*.yaml")}


@pytest.mark.parametrize("driver", DRIVER_FILES)
def test_the_driver_file_selects_the_pods(driver: str) -> None:
    pods, daemon = DRIVER_FILES[driver]["spec"]["pods"], find("DaemonSet", driver)
    key, _, value = pods["selector"].partition("=")
    assert daemon["metadata"]["namespace"] == pods["namespace"] == find("Namespace", driver)["metadata"]["name"]
    assert daemon["spec"]["template"]["metadata"]["labels"][key] == value
    assert container(driver=driver)["name"] == pods["container"]


@pytest.mark.parametrize("driver", DRIVER_FILES)
def test_class_and_driver_are_named_as_in_the_driver_file(driver: str) -> None:
    spec = DRIVER_FILES[driver]["spec"]
    classes = [each["metadata"]["name"] for each in rendered(driver) if each["kind"] == "DeviceClass"]
    assert sorted(classes) == sorted(
        [*spec["devices"]["classes"], *(each["class"] for each in spec.get("optional", {}).values())]
    )
    assert {"name": "FAKE_DRIVER_NAME", "value": spec["driver"]} in container(driver=driver)["env"]


def test_the_two_drivers_have_no_common_object_and_divide_the_devices() -> None:
    names = [{(one["kind"], one["metadata"]["name"]) for one in rendered(driver)} for driver in DRIVER_FILES]
    assert not set.intersection(*names)
    server = hardware_file.read(ROOT / "hardware/server.yaml")
    found = [
        {device.name for device in pools.devices(server, "node-1", kinds(driver).split(","))} for driver in DRIVER_FILES
    ]
    assert not set.intersection(*found)
    assert set.union(*found) == {device.name for device in pools.devices(server, "node-1")}
    assert all(found)


def kinds(driver: str) -> str:
    (found,) = (one["value"] for one in container(driver=driver)["env"] if one["name"] == "FAKE_DRIVER_KINDS")
    return str(found)


@pytest.mark.parametrize("driver", DRIVER_FILES)
def test_pools_of_the_network_get_one_process_that_does_not_run_as_root(driver: str) -> None:
    assert "Deployment" not in {one["kind"] for one in rendered(driver)}
    deployment = find("Deployment", driver, **FABRIC)
    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]) == (1, {"type": "Recreate"})
    pod = deployment["spec"]["template"]["spec"]
    (only,) = pod["containers"]
    assert {"name": "FAKE_DRIVER_ROLE", "value": "network"} in only["env"]
    assert {"name": "FAKE_DRIVER_KINDS", "value": kinds(driver)} in only["env"]
    assert only["securityContext"]["runAsNonRoot"]
    assert only["securityContext"]["readOnlyRootFilesystem"]
    assert not any("hostPath" in volume for volume in pod["volumes"])
    selector = DRIVER_FILES[driver]["spec"]["pods"]["selector"].partition("=")[2]
    assert deployment["spec"]["template"]["metadata"]["labels"]["app"] != selector, (
        "it must not be selected as a node driver"
    )


def test_a_driver_may_write_the_status_of_network_devices_only_if_there_are_some() -> None:
    without, along = str(rendered()), str(rendered("fake-gpu", **FABRIC))
    assert "arbitrary-node:patch" not in without
    assert "mayBeHere" not in without
    assert "arbitrary-node:patch" in along
    assert "|| variables.mayBeHere" in along


def test_the_hardware_file_is_in_the_config_map_unchanged() -> None:
    text = find("ConfigMap")["data"]["hardware.yaml"]
    assert hardware_file.parse(text, "x") == hardware_file.read(ROOT / "hardware/gpus.yaml")


@pytest.mark.parametrize(("faults", "value"), [([], ""), (["no-env", "slices-missing"], "no-env,slices-missing")])
def test_mutants_are_passed_to_the_driver(faults: list[str], value: str) -> None:
    assert {"name": "FAKE_DRIVER_FAULTS", "value": value} in container(faults=faults)["env"]


def test_by_default_the_driver_is_no_mutant() -> None:
    assert {"name": "FAKE_DRIVER_FAULTS", "value": ""} in container()["env"]


def test_the_container_has_minimal_privileges() -> None:
    assert container()["securityContext"] == {
        "runAsUser": 0,
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_an_update_has_no_downtime() -> None:
    assert find("DaemonSet")["spec"]["updateStrategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    names = {one["name"] for one in container()["env"]}
    assert {"POD_UID", "NODE_NAME"} <= names


def test_paths_are_the_same_in_the_container_and_on_the_node() -> None:
    outside = {
        one["name"]: one["hostPath"]["path"]
        for one in find("DaemonSet")["spec"]["template"]["spec"]["volumes"]
        if "hostPath" in one
    }
    inside = {one["name"]: one["mountPath"] for one in container()["volumeMounts"]}
    assert outside.items() <= inside.items()
    assert inside["data"].endswith(DRIVER_FILE["spec"]["driver"])


def test_the_permission_to_write_a_status_is_limited_to_devices_of_this_driver() -> None:
    (rule,) = (one for one in find("ClusterRole")["rules"] if one["resources"] == ["resourceclaims/driver"])
    assert rule["resourceNames"] == [DRIVER_FILE["spec"]["driver"]]


def test_the_policies_match_the_service_account_of_the_pods_and_are_bound() -> None:
    account = find("ServiceAccount")["metadata"]
    assert find("DaemonSet")["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]
    policies = [one for one in rendered() if one["kind"] == "ValidatingAdmissionPolicy"]
    for policy in policies:
        (condition,) = policy["spec"]["matchConditions"]
        assert f"system:serviceaccount:{account['namespace']}:{account['name']}" in condition["expression"]
    bound = {one["spec"]["policyName"] for one in rendered() if one["kind"] == "ValidatingAdmissionPolicyBinding"}
    assert bound == {policy["metadata"]["name"] for policy in policies}
    resources = {
        resource
        for policy in policies
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for resource in rule["resources"]
    }
    assert resources == {"resourceslices", "resourceclaims/status"}


def test_the_optional_policy_allows_the_fields_that_the_driver_supports() -> None:
    text = render_file(
        ROOT / "fake_driver/optional/config-policy.yaml",
        {"driver_name": DRIVER_FILE["spec"]["driver"]},
        allow_unused=True,
    )
    policy, binding = yaml.safe_load_all(text)
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    rules = [one["expression"] for one in policy["spec"]["validations"]]
    assert any(f"== '{opaque_configuration.API_VERSION}'" in rule for rule in rules)
    (gpu,) = (rule for rule in rules if "'sharing']" in rule)
    (nic,) = (rule for rule in rules if "'addresses']" in rule)
    shared = {"apiVersion", "kind", "env"}
    assert set(re.findall(r"'(\w+)'", gpu)) == shared | {"sharing"}
    assert set(re.findall(r"'(\w+)'", nic)) == shared | {key for key, *_ in opaque_configuration._NIC_FIELDS}


def test_the_optional_policy_does_not_block_the_release_of_claims() -> None:
    (policy, _) = yaml.safe_load_all(
        render_file(ROOT / "fake_driver/optional/config-policy.yaml", {"driver_name": "x"}, allow_unused=True)
    )
    looks_at = {
        (resource, operation)
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for resource in rule["resources"]
        for operation in rule["operations"]
    }
    assert looks_at == {
        ("deviceclasses", "CREATE"),
        ("deviceclasses", "UPDATE"),
        ("resourceclaims", "CREATE"),
        ("resourceclaimtemplates", "CREATE"),
    }


def test_containers_get_metadata_unless_it_is_disabled() -> None:
    assert {"name": "FAKE_DRIVER_METADATA", "value": "v1beta1,v1alpha1"} in container()["env"]
    assert {"name": "FAKE_DRIVER_METADATA", "value": ""} in container(metadata=[])["env"]


def granted(*faults: str) -> list[Object]:
    """Return all objects except the DaemonSet, whose environment always contains the mutants."""
    return [one for one in rendered(faults=list(faults)) if one["kind"] != "DaemonSet"]


@pytest.mark.parametrize("fault", [*PERMISSION_MUTANTS, "status-replaces-all"])
def test_wrong_permissions_are_granted_only_to_their_mutants(fault: str) -> None:
    assert granted(fault) != granted() == granted("no-env")
