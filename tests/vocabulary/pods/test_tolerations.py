"""The tolerations of the driver file are added to every pod that a scenario creates."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed import folders
from testbed.models.driver_sections import Toleration
from testbed.vocabulary.ledger import BEFORE_PODS
from testbed.vocabulary.pods.tolerations import with_tolerations
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World

SAID = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
TOLERATION = Toleration.model_validate_json(json.dumps(SAID))
OWN = {"key": "mine", "operator": "Exists"}


def _made(kind: str, spec: Any) -> Any:
    return {"kind": kind, "metadata": {"name": "it"}, "spec": spec}


@pytest.mark.parametrize("kind", [kind for kind in BEFORE_PODS if kind != "CronJob"])
def test_a_pod_template_gets_the_tolerations(kind: str) -> None:
    made = with_tolerations(_made(kind, {"template": {"spec": {"containers": []}}}), [TOLERATION])
    assert made["spec"]["template"]["spec"]["tolerations"] == [SAID]


def test_a_cron_job_gets_the_tolerations() -> None:
    made = with_tolerations(_made("CronJob", {"jobTemplate": {"spec": {"template": {"spec": {}}}}}), [TOLERATION])
    assert made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["tolerations"] == [SAID]


def test_a_pod_keeps_its_own_tolerations() -> None:
    manifest = _made("Pod", {"tolerations": [OWN]})
    assert with_tolerations(manifest, [TOLERATION])["spec"]["tolerations"] == [OWN, SAID]
    assert manifest["spec"]["tolerations"] == [OWN]  # unchanged


@pytest.mark.parametrize("kind", ["ResourceClaim", "DeviceTaintRule", "DeviceClass"])
def test_an_object_without_pods_is_unchanged(kind: str) -> None:
    manifest = _made(kind, {"devices": {}})
    assert with_tolerations(manifest, [TOLERATION]) is manifest


def test_a_pod_of_a_scenario_has_the_tolerations(world: Callable[..., World]) -> None:
    here = world()
    nodes = here.driver_file.nodes.model_copy(update={"tolerations": (TOLERATION,)})
    spec = here.driver_file.spec.model_copy(update={"nodes": nodes})
    here = replace(here, driver_file=here.driver_file.model_copy(update={"spec": spec}))
    with new_scenario(here, "CLAIM-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        assert scenario.pod("first").object["spec"]["tolerations"] == [SAID]


@pytest.mark.parametrize("path", sorted((folders.data("manifests") / "suites").rglob("*.yaml")), ids=str)
def test_all_kinds_with_pods_in_the_suites_are_known(path: Path) -> None:
    kinds = [line.removeprefix("kind: ") for line in path.read_text().splitlines() if line.startswith("kind: ")]
    documents = path.read_text().split("\n---\n")
    with_containers = [kind for kind, text in zip(kinds, documents, strict=True) if "\n  containers:" in text]
    assert set(with_containers) <= {"Pod"}
    templates = [kind for kind, text in zip(kinds, documents, strict=True) if "\n      containers:" in text]
    assert set(templates) <= set(BEFORE_PODS)
