from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from testbed.drivers.published.slices import Device
from testbed.errors import NothingToJudge
from testbed.vocabulary import budgets
from testbed.vocabulary.driver.driver import Driver
from testbed.vocabulary.driver.returned_devices import wait_for_returned_devices
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World
from testbed.waiting import Budget
from tests.fakes.cluster import DRIVER


def _devices(world: World, node: str) -> Any:
    kube: Any = world.kube
    return kube.objects["ResourceSlice", "default", f"slice-{node}"]["spec"]["devices"]


def test_a_device_that_a_claim_uses_is_still_a_device_of_the_driver(world: Callable[..., World]) -> None:
    here = world()
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        (device,) = scenario.pod("first").should_run().devices
        del _devices(here, device.pool)[0]
        driver = Driver(here)
        assert device in driver.devices_on(device.pool)
        assert driver.identity(device).literal == '"node-1-uuid-0"'
        assert driver.contradictions.nodes_with_too_few_devices == ()
        assert not here.returning_devices()
        with pytest.raises(NothingToJudge, match=r"removes devices in use from its slices, such as .*/node-1/gpu-0"):
            driver.published_while_in_use([device])
        others = driver.devices_on("node-2")
        assert driver.published_while_in_use(others) == others
    assert here.returning_devices() == {device}
    with pytest.raises(AssertionError):
        assert device in Driver(here).devices_on(device.pool)


def test_a_scenario_waits_until_returned_devices_are_published(
    world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, lists = world(), []
    here.slices()
    removed = _devices(here, "node-1").pop(0)
    monkeypatch.setattr(budgets, "RETURNED", Budget("returned", 0, "a test", minimum=5))
    kube: Any = here.kube
    list_now = kube.list

    def list_later(*arguments: Any, **selectors: Any) -> Any:
        lists.append(arguments)
        if len(lists) == 5:
            _devices(here, "node-1").insert(0, removed)
        return list_now(*arguments, **selectors)

    monkeypatch.setattr(kube, "list", list_later)
    wait_for_returned_devices(here)
    assert len(_devices(here, "node-1")) == 4


def test_a_device_that_does_not_return_is_forgotten(world: Callable[..., World]) -> None:
    here = world()
    here.slices()
    _devices(here, "node-1").pop(0)
    assert here.returning_devices() == {Device(DRIVER, "node-1", "gpu-0")}
    wait_for_returned_devices(here)
    assert here.returning_devices() == frozenset()
