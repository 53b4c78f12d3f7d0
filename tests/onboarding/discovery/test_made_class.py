from testbed.onboarding.discovery.inference.made_class import class_manifest, groups
from testbed.onboarding.discovery.inference.selectors import selects
from tests.onboarding.discovery.shapes import CPUS, NIC, NICS, device

PCI = device(NIC, "node-1", "pci-0000-00-04-0", type="device", ifName="eth0")


def test_the_largest_group_that_all_nodes_have_is_the_default() -> None:
    found = groups([*NICS, PCI])
    assert (found.attribute, found.default) == ("type", "type=ifb")
    assert found.choices == ["type=ifb", "type=device", "all devices"]


def test_devices_of_one_kind_are_one_group() -> None:
    assert groups(NICS).choices == ["all devices"]
    assert groups(CPUS).choices == ["all devices"]


def test_a_made_class_selects_its_group() -> None:
    made = class_manifest(NIC, "nics", "type", "ifb")
    assert selects(made, NIC, NICS[0].content)
    assert not selects(made, NIC, PCI.content)
    assert not selects(made, NIC, device(NIC, "node-1", "bare").content)
    assert selects(class_manifest(NIC, "nics"), NIC, PCI.content)
    assert selects(class_manifest(NIC, "nics", "example.com/virtual", False), NIC, PCI.content)
