from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from testbed.errors import WaitTimeout
from testbed.vocabulary.scenario import Scenario, new_scenario
from testbed.vocabulary.world import World


@pytest.fixture
def scenario(world: Callable[..., World]) -> Iterator[Scenario]:
    with new_scenario(world(), "T-001") as made:
        yield made


def _kube(scenario: Scenario) -> Any:
    return scenario.world.kube


def test_a_quota_is_waited_for(scenario: Scenario) -> None:
    used = {"count/things": "2"}
    _kube(scenario).put("ResourceQuota", "q", scenario.namespace, status={"used": used})
    quota = scenario.quota("q").should_count("count/things", used="2")
    with pytest.raises(WaitTimeout, match=r"last seen: status\.used: 2"):
        quota.should_count("count/things", used="1")
    with pytest.raises(WaitTimeout, match="not counted yet"):
        quota.should_count("count/others", used="1")
