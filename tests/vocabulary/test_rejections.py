"""Manifests and statuses that the API server rejects, and names and namespaces that a scenario rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import ApiError, UsageError
from testbed.kube.client import Object
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.pods.probe_command import as_container
from testbed.vocabulary.scenario import Scenario, new_scenario
from testbed.vocabulary.world import World

Make = Callable[..., World]
CLAIM = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nstatus: {devices: {{ devices }}}\n"
CLASS = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: {{ name }}}\n"
PROBE = "kind: Pod\nmetadata: {name: p}\nspec: {command: {{ probe | tojson }}, who: {{ unique }}}\n"


@pytest.fixture
def scenario(world: Make, tmp_path: Path) -> Iterator[Scenario]:
    (tmp_path / "claim.yaml").write_text(CLAIM)
    (tmp_path / "class.yaml").write_text(CLASS)
    (tmp_path / "probe.yaml").write_text(PROBE)
    here = world(manifests=tmp_path)
    _quiet(here.kube)
    with new_scenario(here, "T-001") as made:
        yield made


def _quiet(kube: Any) -> None:
    kube.react = lambda _kube: None


def _kube(scenario: Scenario) -> Any:
    return scenario.world.kube


def _refusing(status: int) -> Callable[[Object], None]:
    def refuse(manifest: Object) -> None:
        raise ApiError(f"PATCH {manifest['kind']}", status, "Invalid", "too many devices")

    return refuse


@pytest.mark.parametrize("status", [400, 403, 409, 422])
def test_a_rejection_returns_the_error_message(scenario: Scenario, status: int) -> None:
    _kube(scenario).refuse = _refusing(status)
    assert scenario.should_be_refused("claim.yaml", devices=[]) == "too many devices"
    assert scenario.should_be_refused_on_create("claim.yaml", devices=[]) == "too many devices"
    assert scenario.status_should_be_refused("claim.yaml", devices=[]) == "too many devices"


@pytest.mark.parametrize("status", [0, 404, 500, 503])
def test_other_errors_of_the_server_are_raised(scenario: Scenario, status: int) -> None:
    _kube(scenario).refuse = _refusing(status)
    with pytest.raises(ApiError):
        scenario.should_be_refused("claim.yaml", devices=[])


def test_an_object_that_is_accepted_instead_of_rejected_fails_and_is_deleted(scenario: Scenario) -> None:
    for verb in (scenario.should_be_refused, scenario.should_be_refused_on_create):
        with pytest.raises(NotObserved, match=r"expected the API server to reject claim\.yaml"):
            verb("claim.yaml", devices=[])
        scenario.ledger.clean_up()
        assert "ResourceClaim/c" in _kube(scenario).deleted
        _kube(scenario).deleted.clear()


def test_a_status_that_must_be_accepted(scenario: Scenario) -> None:
    scenario.status_should_be_accepted("claim.yaml", devices=[])
    assert _kube(scenario).applied[-1][2]["dry_run"] is False
    _kube(scenario).refuse = _refusing(422)
    with pytest.raises(
        NotObserved, match=r"expected the API server to accept claim\.yaml(.|\n)*it was rejected: too many devices"
    ):
        scenario.status_should_be_accepted("claim.yaml", devices=[])
    _kube(scenario).refuse = _refusing(500)
    with pytest.raises(ApiError):
        scenario.status_should_be_accepted("claim.yaml", devices=[])


def test_a_status_is_applied_by_its_field_manager_without_force(scenario: Scenario) -> None:
    scenario.apply_status("claim.yaml", by="network", devices=[])
    assert _kube(scenario).applied[-1] == (
        "ResourceClaim", "c", {"manager": "network", "force": False, "subresource": "status", "dry_run": False}
    )  # fmt: skip
    before = len(_kube(scenario).objects)
    scenario.apply_status("claim.yaml", dry_run=True, devices=[])
    assert len(_kube(scenario).objects) == before


def test_a_status_is_not_recorded_in_the_ledger(scenario: Scenario) -> None:
    scenario.apply_status("claim.yaml", devices=[])
    assert "ResourceClaim" not in {each["kind"] for each in scenario.ledger.entries}


def test_a_class_has_the_name_of_its_scenario_and_is_deleted_with_it(scenario: Scenario) -> None:
    scenario.apply("class.yaml", name=f"{scenario.namespace}-mine")
    scenario.ledger.clean_up()
    assert f"DeviceClass/{scenario.namespace}-mine" in _kube(scenario).deleted


def test_a_class_with_a_shared_name_is_rejected(scenario: Scenario) -> None:
    with pytest.raises(UsageError, match="DeviceClass gpu is shared by all tests"):
        scenario.apply("class.yaml", name="gpu")


def test_the_common_variables_of_manifests(scenario: Scenario) -> None:
    scenario.apply("probe.yaml")
    pod = _kube(scenario).objects["Pod", scenario.namespace, "p"]
    assert pod["spec"].items() >= {"command": as_container(["env"]), "who": scenario.namespace}.items()


def test_the_namespace_is_labelled(scenario: Scenario) -> None:
    scenario.label_namespace("a/b", "true")
    labels = _kube(scenario).objects["Namespace", "default", scenario.namespace]["metadata"]["labels"]
    assert labels["a/b"] == "true"
    assert labels["dra-testbed.example/requirement"] == "T-001"


def test_one_object_is_deleted_by_its_name(scenario: Scenario) -> None:
    scenario.apply("probe.yaml")
    scenario.delete("pod", "p")
    assert _kube(scenario).deleted == ["Pod/p"]
    with pytest.raises(UsageError, match="did not create pod q"):
        scenario.delete("pod", "q")
