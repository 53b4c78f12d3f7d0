"""Mutants of the cluster that change the specs of objects."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ci.mutants.activation import cluster_mutant
from testbed.errors import ApiError
from testbed.kube.client import Kube
from testbed.kube.ownership import REQUIREMENT
from tests.e2e.cluster_mutants.objects import (
    ABSENT,
    DEVICES,
    POD,
    Object,
    claim,
    core_object,
    dry_run,
    requests,
    resource,
    template,
)


@pytest.mark.parametrize("made", [claim("new"), template("new")], ids=["claim", "template"])
@pytest.mark.parametrize(
    ("mutant", "field", "left"),
    [
        ("selectors-dropped", "selectors", [None, None]),
        ("admin-access-dropped", "adminAccess", [None, None]),
        ("counts-are-one", "count", [1, 1]),
        ("claims-repaired", "deviceClassName", ["repaired"]),
    ],
)
def test_requests_are_changed(kube: Kube, made: Object, mutant: str, field: str, left: list[Any]) -> None:
    namespace = core_object("Namespace", "default")
    namespace["metadata"]["labels"] = {"resource.kubernetes.io/admin-access": "true"}
    kube.apply(namespace)
    assert [each.get(field) for each in requests(dry_run(kube, made))] != left
    with cluster_mutant(kube, mutant):
        assert [each.get(field) for each in requests(dry_run(kube, made))] == left


def test_alternatives_lose_their_selectors_too(kube: Kube) -> None:
    choice = '{name: one, deviceClassName: c, selectors: [{cel: {expression: "true"}}]}'
    made = claim("new", f"requests: [{{name: a, firstAvailable: [{choice}, {choice.replace('one', 'two')}]}}]")
    with cluster_mutant(kube, "selectors-dropped"):
        (request,) = requests(dry_run(kube, made))
        assert ["selectors" in each for each in request["firstAvailable"]] == [False, False]


@pytest.mark.parametrize("made", [claim("new"), template("new")], ids=["claim", "template"])
def test_constraints_are_dropped(kube: Kube, made: Object) -> None:
    with cluster_mutant(kube, "constraints-dropped"):
        stored = dry_run(kube, made)["spec"]
        assert "constraints" not in stored.get("spec", stored)["devices"]


def test_only_generated_claims_lose_their_labels(kube: Kube) -> None:
    generated = {"resource.kubernetes.io/pod-claim-name": "a"}
    with cluster_mutant(kube, "labels-dropped"):
        assert "labels" not in dry_run(kube, claim("new", labels={"a": "b"}, annotations=generated))["metadata"]
        assert "labels" in dry_run(kube, claim("new", labels={"a": "b"}))["metadata"]


def test_namespaces_quotas_and_pods_are_changed(kube: Kube) -> None:
    quota = {**core_object("ResourceQuota", "new", {"hard": {"count/pods.v1": "1"}})}
    pod = core_object("Pod", "new", yaml.safe_load(POD))
    with cluster_mutant(kube, "admin-label-everywhere"):
        assert (
            dry_run(kube, core_object("Namespace", "new"))["metadata"]["labels"]["resource.kubernetes.io/admin-access"]
            == "true"
        )
    with cluster_mutant(kube, "quotas-lifted"):
        assert set(dry_run(kube, quota)["spec"]["hard"].values()) == {"1k"}
    with cluster_mutant(kube, "claims-leak-to-all-containers"):
        stored = dry_run(kube, pod)["spec"]
        assert [each["resources"].get("claims") for each in stored["containers"]] == [[{"name": "a"}]] * 2
    with cluster_mutant(kube, "pods-lose-their-claims"):
        stored = dry_run(kube, pod)["spec"]
        assert "resourceClaims" not in stored
        assert not any(each["resources"].get("claims") for each in stored["containers"])


@pytest.mark.parametrize(("labels", "images"), [({}, ["i", "j"]), ({REQUIREMENT: "A-001"}, [ABSENT, ABSENT])])
def test_only_pods_of_tests_get_an_absent_image(kube: Kube, labels: dict[str, str], images: list[str]) -> None:
    namespace = core_object("Namespace", "default")
    namespace["metadata"]["labels"] = labels
    kube.apply(namespace)
    pod = core_object(
        "Pod", "new", {"initContainers": [{"name": "a", "image": "i"}], "containers": [{"name": "b", "image": "j"}]}
    )
    with cluster_mutant(kube, "test-pods-never-start"):
        stored = dry_run(kube, pod)["spec"]
        assert [each["image"] for each in (*stored["initContainers"], *stored["containers"])] == images


def test_taint_rules_and_extended_resources_are_changed(kube: Kube) -> None:
    resources = {"limits": {"example.com/gpu": "1500m"}, "requests": {"example.com/gpu": "1500m"}}
    pod = core_object("Pod", "new", {"containers": [{"name": "c", "image": "i", "resources": resources}]})
    device_class = resource("DeviceClass", {"extendedResourceName": "gpu"})
    taint = {"key": "example.com/a", "effect": "NoFun"}
    rule = resource("DeviceTaintRule", {"deviceSelector": {"driver": "d.example"}, "taint": taint})
    for refused in (pod, device_class, rule):
        with pytest.raises(ApiError):
            dry_run(kube, refused)
    with cluster_mutant(kube, "amounts-dropped"):
        assert dry_run(kube, pod)["spec"]["containers"][0]["resources"] == {}
    with cluster_mutant(kube, "resource-names-dropped"):
        assert "extendedResourceName" not in dry_run(kube, device_class)["spec"]
    with cluster_mutant(kube, "taint-rules-narrowed"):
        assert dry_run(kube, rule)["spec"]["deviceSelector"]["pool"] == "nowhere"


def test_a_request_keeps_its_last_selector(kube: Kube) -> None:
    two = DEVICES.replace('{cel: {expression: "true"}}', '{cel: {expression: "false"}}, {cel: {expression: "true"}}')
    with cluster_mutant(kube, "last-selector-counts"):
        stored = requests(dry_run(kube, claim("new", two.replace("adminAccess: true, ", ""))))
        assert [each["selectors"] for each in stored] == [[{"cel": {"expression": "true"}}]] * 2


def test_taint_rules_get_another_effect_or_selector(kube: Kube) -> None:
    selector = {"driver": "d.example", "pool": "p"}
    spec = {"deviceSelector": selector, "taint": {"key": "example.com/a", "effect": "None"}}
    with cluster_mutant(kube, "taint-rules-evict"):
        assert dry_run(kube, resource("DeviceTaintRule", spec))["spec"]["taint"]["effect"] == "NoExecute"
    with cluster_mutant(kube, "taint-rules-widened"):
        assert dry_run(kube, resource("DeviceTaintRule", spec))["spec"]["deviceSelector"] == {"driver": "d.example"}
