"""What the API server refuses, what only a scenario may have, and what is said in a claim's status."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import ApiError, UsageError, WaitTimeout
from testbed.kube.client import Object
from testbed.vocabulary.cluster.taint_rules import TaintRule
from testbed.vocabulary.observing.observation import NotObserved
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
def test_a_refusal_gives_the_servers_words(scenario: Scenario, status: int) -> None:
    _kube(scenario).refuse = _refusing(status)
    assert scenario.should_be_refused("claim.yaml", devices=[]) == "too many devices"
    assert scenario.should_be_refused_on_create("claim.yaml", devices=[]) == "too many devices"
    assert scenario.status_should_be_refused("claim.yaml", devices=[]) == "too many devices"


@pytest.mark.parametrize("status", [0, 404, 500, 503])
def test_a_server_that_is_broken_has_refused_nothing(scenario: Scenario, status: int) -> None:
    _kube(scenario).refuse = _refusing(status)
    with pytest.raises(ApiError):
        scenario.should_be_refused("claim.yaml", devices=[])


def test_what_is_taken_although_it_should_be_refused_is_a_failure_and_does_not_stay(scenario: Scenario) -> None:
    for word in (scenario.should_be_refused, scenario.should_be_refused_on_create):
        with pytest.raises(NotObserved, match=r"expected the API server to refuse claim\.yaml"):
            word("claim.yaml", devices=[])
        scenario.ledger.clean_up()
        assert "ResourceClaim/c" in _kube(scenario).deleted
        _kube(scenario).deleted.clear()


def test_a_status_that_has_to_be_taken(scenario: Scenario) -> None:
    scenario.status_should_be_accepted("claim.yaml", devices=[])
    assert _kube(scenario).applied[-1][2]["dry_run"] is False
    _kube(scenario).refuse = _refusing(422)
    with pytest.raises(
        NotObserved, match=r"expected the API server to take claim\.yaml(.|\n)*it said too many devices"
    ):
        scenario.status_should_be_accepted("claim.yaml", devices=[])
    _kube(scenario).refuse = _refusing(500)
    with pytest.raises(ApiError):
        scenario.status_should_be_accepted("claim.yaml", devices=[])


def test_a_status_is_applied_by_its_writer_who_forces_nobody(scenario: Scenario) -> None:
    scenario.apply_status("claim.yaml", by="network", devices=[])
    assert _kube(scenario).applied[-1] == (
        "ResourceClaim", "c", {"manager": "network", "force": False, "subresource": "status", "dry_run": False}
    )  # fmt: skip
    before = len(_kube(scenario).objects)
    scenario.apply_status("claim.yaml", dry_run=True, devices=[])
    assert len(_kube(scenario).objects) == before


def test_a_status_is_no_object_of_the_scenario(scenario: Scenario) -> None:
    scenario.apply_status("claim.yaml", devices=[])
    assert "ResourceClaim" not in {each["kind"] for each in scenario.ledger.entries}


def test_a_class_bears_the_name_of_its_scenario_and_goes_with_it(scenario: Scenario) -> None:
    scenario.apply("class.yaml", name=f"{scenario.namespace}-mine")
    scenario.ledger.clean_up()
    assert f"DeviceClass/{scenario.namespace}-mine" in _kube(scenario).deleted


def test_a_class_that_is_everybodys_is_refused(scenario: Scenario) -> None:
    with pytest.raises(UsageError, match="DeviceClass gpu is everybody's"):
        scenario.apply("class.yaml", name="gpu")


def test_every_manifest_may_use_the_probe_and_a_name_of_its_own(scenario: Scenario) -> None:
    scenario.apply("probe.yaml")
    pod = _kube(scenario).objects["Pod", scenario.namespace, "p"]
    assert pod["spec"] == {"command": ["env"], "who": scenario.namespace}


def test_the_namespace_is_labelled(scenario: Scenario) -> None:
    scenario.label_namespace("a/b", "true")
    labels = _kube(scenario).objects["Namespace", "default", scenario.namespace]["metadata"]["labels"]
    assert labels["a/b"] == "true"
    assert labels["dra-testbed.example/requirement"] == "T-001"


def test_one_object_is_deleted_by_its_name(scenario: Scenario) -> None:
    scenario.apply("probe.yaml")
    scenario.delete("pod", "p")
    assert _kube(scenario).deleted == ["Pod/p"]
    with pytest.raises(UsageError, match="made no pod q"):
        scenario.delete("pod", "q")


def test_a_quota_is_waited_for(scenario: Scenario) -> None:
    used = {"count/things": "2"}
    _kube(scenario).put("ResourceQuota", "q", scenario.namespace, status={"used": used})
    quota = scenario.quota("q").should_count("count/things", used="2")
    with pytest.raises(WaitTimeout, match="last seen: used: 2"):
        quota.should_count("count/things", used="1")
    with pytest.raises(WaitTimeout, match="not counted yet"):
        quota.should_count("count/others", used="1")


def _rule(scenario: Scenario, *reasons: str) -> TaintRule:
    conditions = [{"type": "EvictionInProgress", "reason": each} for each in reasons]
    spec = {"taint": {"key": "k", **({"timeAdded": "now"} if reasons else {})}}
    _kube(scenario).put("DeviceTaintRule", scenario.namespace, spec=spec, status={"conditions": conditions})
    return scenario.taint_rule


def test_a_rule_that_somebody_has_noticed(scenario: Scenario) -> None:
    rule = _rule(scenario, "OtherEffect")
    assert rule.should_be_observed() is rule
    assert rule.time_added == "now"
    assert rule.should_report("Completed", "OtherEffect") is rule
    with pytest.raises(NotObserved, match=r"to say Completed(.|\n)*last seen: its status says OtherEffect"):
        rule.should_report("Completed")


def test_a_rule_that_nobody_notices_is_not_the_drivers_fault(scenario: Scenario) -> None:
    rule = _rule(scenario)
    assert rule.time_added == ""
    with pytest.raises(WaitTimeout, match="controller manager does not look at DeviceTaintRules"):
        rule.should_be_observed()
