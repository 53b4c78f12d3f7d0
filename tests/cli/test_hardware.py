from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from testbed.cli import hardware as commands
from testbed.errors import UsageError


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(commands.group, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_all_shipped_hardware_is_listed_with_a_description() -> None:
    lines = dict(line.split(maxsplit=1) for line in invoke("list").splitlines())
    assert lines["teaching"] == "Two small GPUs that are easy to tell apart"
    assert {"name": "nics", "about": "Two network cards of 100 Gbit/s"} in json.loads(invoke("list", "-o", "json"))


def test_a_node_is_drawn_with_devices_below_the_same_root() -> None:
    drawn = invoke("show", "gpus-and-nics")
    at = drawn.index("pci0000:26")
    assert drawn.index("NUMA node 0") < at < drawn.index("gpu-1 ") < drawn.index("nic-1 ") < drawn.index("pci0000:37")
    assert "NUMA node 1" in drawn[at:]


def test_parts_are_below_their_device_and_similar_ones_share_a_line() -> None:
    lines = invoke("show", "nics").splitlines()
    (whole,) = [line for line in lines if "nic-1 " in line]
    (parts,) = [line for line in lines if "nic-1-vf-0" in line]
    assert "nic-1-vf-7" in parts
    assert "8 \N{MULTIPLICATION SIGN} vf" in parts
    assert parts.index("nic") > whole.index("nic")


def test_taints_and_different_nodes_are_shown() -> None:
    assert "broken=ecc:NoExecute" in invoke("show", "mixed-fleet")
    assert "F200" not in invoke("show", "mixed-fleet")
    assert "F200" in invoke("show", "mixed-fleet", "--node", "node-2")


def test_network_devices_are_drawn_beside_the_node() -> None:
    drawn = invoke("show", "fabric")
    assert "fabric-ports  any node, 16 devices" in drawn
    assert "needs dra-testbed.example/attached" in drawn


def test_the_tree_can_be_printed_as_json() -> None:
    (place,) = json.loads(invoke("show", "thousand", "-o", "json"))
    assert len(place["devices"]) == 1000
    assert place["pools"][0]["slices"] == 8


class Cluster:
    """A testbed with published ResourceSlices."""

    kube: Cluster
    driver_file = None

    def __init__(self, items: list[dict[str, Any]]) -> None:
        self.items, self.kube = items, self

    def list(self, api_version: str, kind: str) -> list[dict[str, Any]]:
        assert (api_version, kind) == ("resource.k8s.io/v1", "ResourceSlice")
        return self.items


def test_published_devices_of_all_drivers_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = {"name": "node-1", "generation": 3, "resourceSliceCount": 2}
    device = {"name": "gpu-0", "attributes": {"model": {"string": "Real"}}}
    spec = {"driver": "gpu.vendor.example", "nodeName": "node-1", "pool": pool, "devices": [device]}
    monkeypatch.setattr("testbed.bringup.attach", lambda name: Cluster([{"metadata": {"name": name}, "spec": spec}]))
    drawn = invoke("show", "--name", "mine")
    assert "gpu.vendor.example: 1 of 2 slices, generation 3" in drawn
    assert "gpu-0  Real" in drawn
    with pytest.raises(UsageError, match="testbed mine: nothing is published for node node-7"):
        invoke("show", "--name", "mine", "--node", "node-7")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["show", "teaching", "--name", "x"], "--name x is a testbed, and teaching is a hardware file"),
        (["show", "teachin"], "teaching"),
        (["show", "./missing.yaml"], "missing.yaml"),
        (["show"], "there is no testbed default"),
    ],
)
def test_hardware_that_cannot_be_shown_is_wrong_usage(arguments: list[str], text: str) -> None:
    with pytest.raises(UsageError) as refused:
        CliRunner().invoke(commands.group, arguments, catch_exceptions=False)
    assert text in f"{refused.value} {refused.value.hint}"


def test_a_path_is_relative_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yaml").write_text(
        "apiVersion: dra-testbed/v1alpha1\nkind: Hardware\nmetadata: {name: mine}\nspec: {devices: [{kind: tpu, count: 3}]}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert "tpu-2" in invoke("show", "mine.yaml")
