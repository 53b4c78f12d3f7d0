"""What a probe shows is compared with the allocation, and means a device of another node only if identities are unique in the cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from testbed.drivers.published.slices import Device
from testbed.errors import UsageError
from testbed.kube.client import Object
from testbed.models.driver.devices import Identity
from testbed.vocabulary.pods.identified_devices import known_devices
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World
from tests.fakes.cluster import DRIVER, slice_spec
from tests.fakes.driver_files import with_values

PER_NODE = Identity(attribute="uuid", scope="node")


@pytest.fixture
def here(world: Callable[..., World]) -> World:
    """Return a world in which identities are unique per node only, and the same on both nodes."""
    made = world()
    for node in ("node-1", "node-2"):
        for index, device in enumerate(_slices(made, node)["spec"]["devices"]):
            device["attributes"]["uuid"] = {"string": f"0000:0{index}"}
    return replace(made, driver_file=with_values(made.driver_file, "devices", identity=PER_NODE))


def _slices(world: World, node: str) -> Object:
    kube: Any = world.kube
    found: Object = kube.objects["ResourceSlice", "default", f"slice-{node}"]
    return found


def _add(world: World, pool: str, **spec: object) -> None:
    kube: Any = world.kube
    kube.put("ResourceSlice", f"slice-{pool}", spec={**slice_spec("node-1", 2), "pool": _pool(pool), **spec})


def _pool(name: str) -> Object:
    return {"name": name, "generation": 1, "resourceSliceCount": 1}


@pytest.mark.parametrize("node", ["node-1", "node-2"])
def test_an_identity_means_the_device_of_the_pods_node(here: World, node: str) -> None:
    assert known_devices(here, node, [], ["0000:01"])["0000:01"] == Device(DRIVER, node, "gpu-1")
    assert known_devices(here, node, [], ["gpu-1"], by_name=True)["gpu-1"] == Device(DRIVER, node, "gpu-1")


def test_an_identity_that_only_another_node_has_means_no_device(here: World) -> None:
    _slices(here, "node-2")["spec"]["devices"][0]["attributes"]["uuid"] = {"string": "0000:99"}
    assert "0000:99" not in known_devices(here, "node-1", [], ["0000:99"])
    unique = replace(here, driver_file=with_values(here.driver_file, "devices.identity", scope="cluster"))
    assert known_devices(unique, "node-1", [], ["0000:99"])["0000:99"] == Device(DRIVER, "node-2", "gpu-0")


def test_a_device_that_left_its_slice_is_the_one_that_was_allocated(here: World) -> None:
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        pod = scenario.pod("first").should_run()
        (device,) = pod.devices
        published = _slices(here, pod.node)["spec"]
        published["devices"] = [each for each in published["devices"] if each["name"] != device.name]
        kube: Any = here.kube
        kube.outputs["first/cat"] = "GPU_DEVICE_GPU_0_UUID=0000:00\n"
        assert pod.seen_devices == {device}


def test_a_device_that_got_the_identity_of_an_allocated_one_is_not_taken_for_it(here: World) -> None:
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        pod = scenario.pod("first").should_run()
        (device,) = pod.devices
        first, second, *_ = _slices(here, pod.node)["spec"]["devices"]
        first["attributes"], second["attributes"] = second["attributes"], first["attributes"]
        assert known_devices(here, pod.node, pod.claims.values(), [])["0000:00"] == device


def test_network_attached_devices_are_found_on_every_node(here: World) -> None:
    _add(here, "net", nodeName=None, allNodes=True, devices=[{"name": "far-0"}])
    assert known_devices(here, "node-2", [], ["far-0"], by_name=True)["far-0"] == Device(DRIVER, "net", "far-0")


def test_a_shown_name_of_two_devices_is_ambiguous_unless_one_is_allocated(here: World) -> None:
    _add(here, "more")
    with pytest.raises(UsageError, match="gpu-0 of a container on node node-1 is ambiguous: pool more and pool node-1"):
        known_devices(here, "node-1", [], ["gpu-0"], by_name=True)
    assert known_devices(here, "node-1", [], ["gpu-3"], by_name=True)["gpu-3"] == Device(DRIVER, "node-1", "gpu-3")
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        pod = scenario.pod("first").should_run()
        assert {known_devices(here, "node-1", pod.claims.values(), ["gpu-0"], by_name=True)["gpu-0"]} == pod.devices


@pytest.mark.parametrize("by_name", [False, True])
def test_a_device_allocated_on_another_node_is_not_the_one_that_the_container_shows(
    here: World, *, by_name: bool
) -> None:
    with new_scenario(here, "PRESCHED-009") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        pod = scenario.pod("first").should_run()
        shown = "gpu-0" if by_name else "0000:00"
        assert pod.devices == {Device(DRIVER, "node-1", "gpu-0")}
        seen = known_devices(here, "node-2", pod.claims.values(), [shown], by_name=by_name)
        assert seen[shown] == Device(DRIVER, "node-2", "gpu-0")
