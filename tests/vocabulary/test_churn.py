from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from testbed.errors import UsageError
from testbed.models.driver.devices import ClaimShape
from testbed.vocabulary import churn
from testbed.vocabulary.churn import Churn
from testbed.vocabulary.cluster.nodes import Node
from testbed.vocabulary.driver.driver import Driver
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World

PLAIN = ClaimShape()
MANIFEST = "lifecycle/churning-pod.yaml"


class Killed:
    """A driver that restarts at once, and a container runtime and a kubelet that do."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def kill_on(self, _node: str) -> None:
        self.order.append("driver")

    def __getattr__(self, name: str) -> Any:
        return lambda _node: self.order.append(name)


@pytest.fixture
def churned(world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that lets pods churn until so many ran, and returns what was seen, the notes and what was killed."""
    monkeypatch.setattr(churn, "_SECONDS", 0)
    monkeypatch.setattr(churn, "_STEP", 0)

    def run(least: str, fault: str = "", claim: ClaimShape = PLAIN) -> Any:
        here, killed, notes = _with_shape(world(fault), claim), Killed(), list[str]()
        monkeypatch.setenv(churn.LEAST_PODS, least)
        for verb in ("restart_runtime", "restart_kubelet"):
            monkeypatch.setattr(Node, verb, lambda node, verb=verb: killed.order.append(verb))
        cluster: Any = killed
        daemon: Any = killed
        with new_scenario(here, "LIFE-060") as scenario:
            node = Node("node-1", here, cluster)
            found = Churn(scenario, Driver(here), daemon, node, notes.append).run(MANIFEST)
        return found, notes, killed.order

    return run


def _with_shape(world: World, claim: ClaimShape) -> World:
    file = world.driver_file
    devices = file.spec.devices.model_copy(update={"claim": claim})
    return replace(
        world, driver_file=file.model_copy(update={"spec": file.spec.model_copy(update={"devices": devices})})
    )


def test_claims_for_all_devices_of_a_node_come_one_after_another(churned: Callable[..., Any]) -> None:
    found, _, order = churned("2", claim=ClaimShape(counts="all"))
    assert (found.pods, len(order)) == (2, 2)


def test_components_are_killed_in_turn_until_enough_pods_ran(churned: Callable[..., Any]) -> None:
    found, notes, order = churned("5")
    assert (found.pods, found.without_devices) == (6, ())
    assert order == ["driver", "restart_runtime", "restart_kubelet"]
    assert notes == ["6 pods ran, 3 components were killed, 0 pods lacked devices"]


def test_a_running_pod_without_its_devices_is_described(churned: Callable[..., Any]) -> None:
    found, notes, _ = churned("1", "no-env")
    assert [each.partition(" of ")[0] for each in found.without_devices] == [
        "round-0-0 sees no device, not gpu-0",
        "round-0-1 sees no device, not gpu-1",
    ]
    assert "2 pods lacked devices" in notes[0]


def test_a_number_of_pods_that_is_none_is_refused(churned: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="DRA_TESTBED_CHURN_PODS is 'many'"):
        churned("many")
