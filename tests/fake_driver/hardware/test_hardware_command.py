"""`python -m fake_driver.hardware`, called as a function."""

import json
from pathlib import Path

import pytest

from fake_driver.hardware.__main__ import main

ROOT = Path(__file__).parents[3] / "manifests" / "hardware"


def test_the_slices_of_both_drivers_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(ROOT / "fabric.yaml"), "--node", "n", "--driver", "x.example", "--kinds", "gpu,port"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert [item["spec"]["pool"] for item in items] == [
        {"name": "n", "generation": 1, "resourceSliceCount": 1},
        {"name": "fabric-ports", "generation": 1, "resourceSliceCount": 1},
    ]
    assert {item["spec"]["driver"] for item in items} == {"x.example"}
    assert not any("ownerReferences" in item["metadata"] for item in items)


def test_slices_of_several_nodes_are_printed_with_one_copy_of_network_pools(capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(ROOT / "fabric.yaml"), "--node", "n", "--node", "m", "--driver", "x.example", "--kinds", "gpu,port"]
    assert main(words) == 0
    pools = [item["spec"]["pool"]["name"] for item in json.loads(capsys.readouterr().out)["items"]]
    assert pools == ["n", "m", "fabric-ports"]


def test_an_invalid_file_is_refused_with_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.yaml").write_text("kind: Hard")
    assert main([str(tmp_path / "x.yaml")]) == 2
    assert "is not a valid hardware file" in capsys.readouterr().err


def test_changes_that_exceed_a_limit_are_refused_with_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taints = [{"key": f"t{index}", "effect": "NoSchedule"} for index in range(9)]
    document = {
        "apiVersion": "dra-testbed/v1alpha1", "kind": "Hardware", "metadata": {"name": "x"},
        "spec": {"devices": [{"kind": "gpu", "count": 1, "taints": taints}], "changes": [{"taints": taints}]},
    }  # fmt: skip
    (tmp_path / "x.yaml").write_text(json.dumps(document))
    assert main([str(tmp_path / "x.yaml")]) == 2
    assert "device gpu-0: it has 18 taints, but may have 16" in capsys.readouterr().err
