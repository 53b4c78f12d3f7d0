import re

from hypothesis import given
from hypothesis import strategies as st

from fake_driver.devices.model import DeviceGroup, Hardware
from fake_driver.hardware.pools import devices

groups = st.builds(DeviceGroup, kind=st.sampled_from(["gpu", "nic", "gpu-1"]), count=st.integers(1, 20))
hardware = st.builds(Hardware, name=st.just("x"), groups=st.lists(groups, max_size=4).map(tuple))
nodes = st.sampled_from(["worker", "worker-1", "a.b.c"])


def test_the_devices_of_a_kind_are_numbered_through_all_groups() -> None:
    mixed = Hardware("x", (DeviceGroup("gpu", 2), DeviceGroup("nic", 1), DeviceGroup("gpu", 1, {"model": "other"})))
    assert [device.name for device in devices(mixed, "n")] == ["gpu-0", "gpu-1", "nic-0", "gpu-2"]
    assert devices(mixed, "n")[3].attributes["index"] == 2


def test_a_devices_own_attributes_override_those_of_its_group() -> None:
    group = DeviceGroup("gpu", 2, {"model": "a", "numa": 0}, {"memory": "1Gi"}, ({}, {"numa": 1, "uuid": "mine"}))
    first, second = devices(Hardware("x", (group,)), "n")
    assert (first.attributes["numa"], second.attributes["numa"]) == (0, 1)
    assert second.attributes["uuid"] == "mine"
    assert second.capacity == {"memory": "1Gi"}


@given(hardware, nodes)
def test_the_same_hardware_file_gives_the_same_devices(described: Hardware, node: str) -> None:
    assert devices(described, node) == devices(described, node)


@given(hardware, nodes, nodes)
def test_names_are_unique_on_a_node_and_uuids_on_all_nodes(described: Hardware, one: str, other: str) -> None:
    names = [device.name for device in devices(described, one)]
    assert len(set(names)) == len(names) == sum(group.count for group in described.groups)
    assert all(re.fullmatch(r"[a-z][-a-z0-9]{0,62}", name) for name in names)
    identities = [device.attributes["uuid"] for node in {one, other} for device in devices(described, node)]
    assert len(set(identities)) == len(identities)
