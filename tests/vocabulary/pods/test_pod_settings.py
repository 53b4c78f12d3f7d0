"""Pods that a scenario creates get the tolerations of the driver file, and meet the Pod Security Standard `restricted`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import folders
from testbed.models.driver_file import DriverFile, load_driver_file
from testbed.models.driver_sections import Toleration
from testbed.vocabulary.ledger import BEFORE_PODS
from testbed.vocabulary.pods.pod_settings import RESTRICTED_CONTAINER, RESTRICTED_POD, with_pod_settings
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World
from tests.fakes import cluster
from tests.fakes.driver_files import with_values

SAID = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
TOLERATION = Toleration.model_validate_json(json.dumps(SAID))
OWN = {"key": "mine", "operator": "Exists"}


@pytest.fixture
def plain() -> DriverFile:
    return load_driver_file(cluster.driver_path())


@pytest.fixture
def tolerant(plain: DriverFile) -> DriverFile:
    return with_values(plain, "nodes", tolerations=(TOLERATION,))


def _made(kind: str, spec: Any) -> Any:
    return {"kind": kind, "metadata": {"name": "it"}, "spec": spec}


@pytest.mark.parametrize("kind", [kind for kind in BEFORE_PODS if kind != "CronJob"])
def test_a_pod_template_gets_the_settings(tolerant: DriverFile, kind: str) -> None:
    made = with_pod_settings(_made(kind, {"template": {"spec": {"containers": []}}}), tolerant)
    assert made["spec"]["template"]["spec"]["tolerations"] == [SAID]
    assert made["spec"]["template"]["spec"]["securityContext"] == RESTRICTED_POD


def test_a_cron_job_gets_the_settings(tolerant: DriverFile) -> None:
    made = with_pod_settings(_made("CronJob", {"jobTemplate": {"spec": {"template": {"spec": {}}}}}), tolerant)
    assert made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["tolerations"] == [SAID]


def test_a_pod_keeps_its_own_settings(tolerant: DriverFile) -> None:
    own = {"runAsUser": 7}
    manifest = _made("Pod", {"tolerations": [OWN], "securityContext": own, "containers": []})
    made = with_pod_settings(manifest, tolerant)["spec"]
    assert made["tolerations"] == [OWN, SAID]
    assert made["securityContext"] == {**RESTRICTED_POD, "runAsUser": 7}
    assert (manifest["spec"]["tolerations"], manifest["spec"]["securityContext"]) == ([OWN], own)  # unchanged


def test_all_containers_of_a_pod_meet_the_standard_restricted(plain: DriverFile) -> None:
    spec = {key: [{"name": key}] for key in ("initContainers", "containers", "ephemeralContainers")}
    made = with_pod_settings(_made("Pod", spec), plain)["spec"]
    assert "tolerations" not in made
    for key in spec:
        assert made[key] == [{"name": key, "securityContext": RESTRICTED_CONTAINER}]


def test_pods_run_as_root_for_a_probe_that_needs_it(tolerant: DriverFile) -> None:
    made = with_pod_settings(_made("Pod", {"containers": [{}]}), with_values(tolerant, "probe", as_root=True))
    assert made["spec"] == {"containers": [{}], "tolerations": [SAID]}


@pytest.mark.parametrize("kind", ["ResourceClaim", "DeviceTaintRule", "DeviceClass"])
def test_an_object_without_pods_is_unchanged(tolerant: DriverFile, kind: str) -> None:
    manifest = _made(kind, {"devices": {}})
    assert with_pod_settings(manifest, tolerant) is manifest


@pytest.mark.parametrize("kind", ["Pod", "DaemonSet"])
def test_a_manifest_of_a_status_is_unchanged(tolerant: DriverFile, kind: str) -> None:
    manifest = {"kind": kind, "metadata": {"name": "it"}, "status": {"phase": "Pending"}}
    assert with_pod_settings(manifest, tolerant) is manifest


@pytest.mark.parametrize("path", sorted((folders.data("manifests") / "suites").rglob("*.yaml")), ids=str)
def test_the_settings_can_be_added_to_every_manifest_of_the_suites(tolerant: DriverFile, path: Path) -> None:
    text = re.sub(r"{%.*?%}", "", re.sub(r"{{.*?}}", "1", path.read_text()))
    try:
        documents = [each for each in yaml.safe_load_all(text) if each]
    except yaml.YAMLError:
        pytest.skip("its YAML depends on the values of variables")
    for each in documents:
        with_pod_settings(each, tolerant)


def test_a_pod_of_a_scenario_has_the_settings(world: Callable[..., World], tolerant: DriverFile) -> None:
    with new_scenario(replace(world(), driver_file=tolerant), "CLAIM-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        made = scenario.pod("first").object["spec"]
        assert made["tolerations"] == [SAID]
        assert made["securityContext"] == RESTRICTED_POD


@pytest.mark.parametrize("path", sorted((folders.data("manifests") / "suites").rglob("*.yaml")), ids=str)
def test_all_kinds_with_pods_in_the_suites_are_known(path: Path) -> None:
    kinds = [line.removeprefix("kind: ") for line in path.read_text().splitlines() if line.startswith("kind: ")]
    documents = path.read_text().split("\n---\n")
    with_containers = [kind for kind, text in zip(kinds, documents, strict=True) if "\n  containers:" in text]
    assert set(with_containers) <= {"Pod"}
    templates = [kind for kind, text in zip(kinds, documents, strict=True) if "\n      containers:" in text]
    assert set(templates) <= set(BEFORE_PODS)
