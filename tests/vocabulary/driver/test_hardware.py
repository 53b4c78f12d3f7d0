from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from testbed.drivers import live_control
from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed, TestbedError
from testbed.vocabulary.driver.hardware import Hardware, restored_hardware
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.world import World
from tests.fakes import cluster

GPU = Device(cluster.DRIVER, "node-1", "gpu-1")
Make = Callable[..., World]


class Playing:
    """A fake driver that makes changes and publishes them, unless `is_broken`."""

    def __init__(self, world: World, is_broken: bool = False) -> None:
        self.world, self.is_broken = world, is_broken
        self.asked: list[tuple[str, ...]] = []

    def ask(self, kube: Any, _file: Any, node: str, arguments: list[str]) -> dict[str, Any]:
        self.asked.append((node, *arguments))
        if not self.is_broken:
            spec = kube.objects["ResourceSlice", "default", f"slice-{node}"]["spec"]
            spec["devices"] = self.changed(cluster.slice_spec(node, 4)["devices"], *arguments)
        return {"changed": True}

    def changed(self, devices: list[Any], verb: str, name: str = "", what: str = "") -> list[Any]:
        for device in (each for each in devices if each["name"] == name):
            if verb == "taint":
                device["taints"] = [
                    {"key": what.partition(":")[0], "effect": what.partition(":")[2], "timeAdded": "now"}
                ]
            if verb == "set":
                device["attributes"]["model"] = {"string": what.partition("=")[2].strip('"')}
        return [each for each in devices if verb != "unplug" or each["name"] != name]


@pytest.fixture
def playing(world: Make, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Playing]:
    def make(is_broken: bool = False) -> Playing:
        made = Playing(world(), is_broken)
        monkeypatch.setattr(live_control, "run_control", made.ask)
        return made

    return make


def test_each_change_waits_until_it_is_published_and_is_undone_at_the_end(playing: Callable[..., Playing]) -> None:
    live = playing()
    with restored_hardware(live.world) as hardware:
        assert [state.names for state in hardware.unplug(GPU).states] == [
            ("gpu-0", "gpu-1", "gpu-2", "gpu-3"),
            ("gpu-0", "gpu-2", "gpu-3"),
        ]
        hardware.plug(GPU)
        hardware.taint(GPU, "k", "NoSchedule")
        hardware.untaint(GPU, "k")
        change = hardware.set(GPU, f"{cluster.DRIVER}/model", "F900")
        assert (change.intermediate_states, change.generations) == ((), [1, 1])
    assert live.asked == [
        ("node-1", "unplug", "gpu-1"),
        ("node-1", "plug", "gpu-1"),
        ("node-1", "taint", "gpu-1", "k:NoSchedule"),
        ("node-1", "untaint", "gpu-1", "k"),
        ("node-1", "set", "gpu-1", 'model="F900"'),
        ("node-1", "restore"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda hardware: hardware.unplug(GPU),
        lambda hardware: hardware.taint(GPU, "k", "NoSchedule"),
        lambda hardware: hardware.set(GPU, "model", "F900"),
        lambda hardware: hardware.plug(replace(GPU, name="gpu-9")),
    ],
)
def test_a_driver_that_does_not_publish_a_change_is_blamed(
    playing: Callable[..., Playing], change: Callable[[Hardware], Any]
) -> None:
    with pytest.raises(NotObserved, match="does not publish the change of its hardware"):
        change(Hardware(playing(is_broken=True).world))


def test_a_pool_that_is_not_restored_at_the_end_is_reported(playing: Callable[..., Playing]) -> None:
    live = playing()
    hardware = Hardware(live.world)
    hardware.unplug(GPU)
    live.is_broken = True
    with pytest.raises(NotObserved, match="pool node-1 to be restored"):
        hardware.restore()


def test_the_health_of_a_device_is_set_and_undone_at_the_end(playing: Callable[..., Playing]) -> None:
    live = playing()
    with restored_hardware(live.world) as hardware:
        hardware.set_health(GPU, "unhealthy")
    assert live.asked == [("node-1", "health", "gpu-1", "unhealthy"), ("node-1", "restore")]


def test_a_network_attached_device_cannot_be_changed(playing: Callable[..., Playing]) -> None:
    with pytest.raises(DriverFailed, match="is in no pool of a node"):
        Hardware(playing().world).unplug(replace(GPU, pool="fabric"))


def test_an_error_on_one_node_does_not_keep_others_from_being_restored(
    playing: Callable[..., Playing], monkeypatch: pytest.MonkeyPatch
) -> None:
    live = playing()
    hardware = Hardware(live.world)
    hardware.unplug(GPU)
    hardware.unplug(replace(GPU, pool="node-2"))

    def ask(kube: Any, file: Any, node: str, arguments: list[str]) -> dict[str, Any]:
        if node == "node-1":
            raise TestbedError("its socket is gone")
        return live.ask(kube, file, node, arguments)

    monkeypatch.setattr(live_control, "run_control", ask)
    with pytest.raises(TestbedError, match="its socket is gone"):
        hardware.restore()
    assert live.asked[-1] == ("node-2", "restore")
