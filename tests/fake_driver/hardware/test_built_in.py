"""The shipped hardware files are valid, and so are the slices that follow from them."""

from pathlib import Path

import pytest
import yaml

from fake_driver.devices.model import Device, Hardware
from fake_driver.hardware import hardware_file
from fake_driver.hardware.pools import pools
from fake_driver.publishing.slices import Owner, for_network, for_node
from fake_driver.publishing.validation import find_problems

FILES = sorted((Path(__file__).parents[3] / "manifests" / "hardware").glob("*.yaml"))
each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def built_in(name: str) -> Hardware:
    (file,) = [file for file in FILES if file.stem == name]
    return hardware_file.read(file)


def on(name: str, node: str = "node-1") -> dict[str, Device]:
    return {device.name: device for device in pools(built_in(name), node)[0].devices}


@each_file
@pytest.mark.parametrize("node", ["node-1", "node-2", "rack-b"])
def test_the_slices_of_shipped_hardware_are_valid(file: Path, node: str) -> None:
    here, *network = pools(hardware_file.read(file), node)
    assert here.devices
    assert (
        find_problems([*for_node("gpu.example", Owner(node, "u"), here.devices), *for_network("gpu.example", network)])
        == []
    )


@each_file
def test_shipped_hardware_has_the_name_of_its_file_and_begins_with_a_comment(file: Path) -> None:
    text = file.read_text()
    assert yaml.safe_load(text)["metadata"]["name"] == file.stem
    assert text.startswith("# ")


def test_the_shipped_hardware_is_complete() -> None:
    assert {"teaching", "gpus", "a100", "h100", "gb200", "mi300x", "l40s", "nics", "gpus-and-nics"} <= {
        file.stem for file in FILES
    }


def test_shipped_hardware_uses_attributes_of_every_type() -> None:
    attributes = [device.attributes for file in FILES for device in pools(hardware_file.read(file), "x-2")[0].devices]
    types = {type(value) for each in attributes for value in each.values()}
    assert {kind.__name__ for kind in types} == {"bool", "int", "str", "Version", "tuple"}


def test_each_gpu_has_a_card_below_its_own_root() -> None:
    found = on("gpus-and-nics")
    for index in range(8):
        roots = {found[f"{kind}-{index}"].attributes["resource.kubernetes.io/pcieRoot"] for kind in ("gpu", "nic")}
        assert len(roots) == 1


def test_trays_of_a_rack_share_a_domain_that_differs_from_other_racks() -> None:
    domains = {node: on("gb200", node)["gpu-0"].attributes["nvlinkDomain"] for node in ("node-1", "node-2", "tray-b")}
    assert domains == {"node-1": "rack-a", "node-2": "rack-a", "tray-b": "rack-b"}


def test_a_partition_consumes_counters_of_the_whole_device_and_names_it() -> None:
    found = on("a100")
    part, whole = found["gpu-0-3g-20gb-1"], found["gpu-0"]
    assert part.parent == part.attributes["parent"] == "gpu-0"
    assert dict(part.consumes_counters[0].counters) == {"compute": "3", "memory": "4"}
    assert (
        dict(whole.consumes_counters[0].counters)
        == dict(part.consumes_counters[0].available)
        == {"compute": "7", "memory": "8"}
    )
    assert (whole.attributes["profile"], part.attributes["profile"]) == ("whole", "3g.20gb")
    assert part.attributes["uuid"] != whole.attributes["uuid"]


def test_virtual_functions_have_their_own_interface_and_addresses() -> None:
    found = on("nics")
    networks = [device.network for device in found.values() if device.network]
    assert len(networks) == 18
    assert len({each.hardware_address for each in networks}) == len({each.ips for each in networks}) == 18
    assert found["nic-1-vf-2"].network
    assert found["nic-1-vf-2"].network.interface == found["nic-1-vf-2"].attributes["interface"] == "net1v2"


def test_nodes_of_a_mixed_fleet_differ() -> None:
    assert sorted(on("mixed-fleet", "node-1")) == ["gpu-0", "gpu-1", "gpu-2"]
    assert sorted(on("mixed-fleet", "node-2")) == [f"gpu-{index}" for index in range(6)]
    assert on("mixed-fleet", "node-2")["gpu-5"].attributes["model"] == "F200"
    assert [taint.effect for taint in on("mixed-fleet")["gpu-1"].taints] == ["NoExecute"]


def test_kinds_select_the_devices_of_one_of_two_drivers() -> None:
    hardware = built_in("gpus-and-nics")
    assert {device.kind for device in pools(hardware, "n", ["nic"])[0].devices} == {"nic"}
    assert [pool.name for pool in pools(built_in("fabric"), "n", ["port"])] == ["n", "fabric-ports"]
