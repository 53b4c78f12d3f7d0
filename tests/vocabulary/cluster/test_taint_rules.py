from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from testbed.errors import WaitTimeout
from testbed.vocabulary.cluster.taint_rules import TaintRule
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.scenario import Scenario, new_scenario
from testbed.vocabulary.world import World


@pytest.fixture
def scenario(world: Callable[..., World]) -> Iterator[Scenario]:
    with new_scenario(world(), "T-001") as made:
        yield made


def _kube(scenario: Scenario) -> Any:
    return scenario.world.kube


def _rule(scenario: Scenario, *reasons: str) -> TaintRule:
    conditions = [{"type": "EvictionInProgress", "reason": each} for each in reasons]
    spec = {"taint": {"key": "k", **({"timeAdded": "now"} if reasons else {})}}
    _kube(scenario).put("DeviceTaintRule", scenario.namespace, spec=spec, status={"conditions": conditions})
    return scenario.taint_rule


def test_a_rule_with_a_status(scenario: Scenario) -> None:
    rule = _rule(scenario, "OtherEffect")
    assert rule.should_be_observed() is rule
    assert rule.time_added == "now"
    assert rule.should_report("Completed", "OtherEffect") is rule
    with pytest.raises(
        NotObserved, match=r"to report Completed(.|\n)*last seen: reasons of EvictionInProgress: OtherEffect"
    ):
        rule.should_report("Completed")


def test_a_rule_that_is_not_observed_does_not_blame_the_driver(scenario: Scenario) -> None:
    rule = _rule(scenario)
    assert rule.time_added == ""
    with pytest.raises(WaitTimeout, match="controller manager does not process DeviceTaintRules"):
        rule.should_be_observed()
