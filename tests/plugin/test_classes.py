"""A driver with several classes of ordinary devices is judged with each of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.fakes import cluster
from tests.plugin.conftest import Run

OTHER = "binding.gpu.dra-testbed.example"  # it exists on the testbed in memory
SUITE = """
def of_core(name):
    return requirement(name, "It works.", level=MUST, tier=E2E, source="here")

@of_core("CLAIM-010")
def test_of_core(scenario, driver):
    scenario.apply("basic/claim-by-name.yaml")
    assert scenario.claim("my-device").object["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == driver.device_class
    assert driver.device_class == "gpu.dra-testbed.example"

@required(1)
def test_beside_core(scenario, driver):
    assert driver.device_class == "gpu.dra-testbed.example"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    content = yaml.safe_load(cluster.driver_path().read_text())
    del content["spec"]["install"], content["spec"]["companions"], content["spec"]["optional"]
    del content["spec"]["devices"]["examples"]["match"]  # no device here has the attribute
    content["spec"]["devices"]["classes"] += [OTHER]
    path = tmp_path / "driver.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one-process", "workers"])
def test_core_is_judged_with_each_class_and_has_the_worst_verdict(
    judge: Callable[..., Run], file: Path, workers: tuple[str, ...]
) -> None:
    run = judge(SUITE, "--profile", "full", "--driver", str(file), *workers, in_subprocess=bool(workers))
    assert run.verdicts == {"CLAIM-010": "fail", "T-001": "pass"}
    assert run.row("CLAIM-010").message.startswith(f"with class {OTHER}: ")
    assert f"test_of_core[{OTHER}]" in (run.folder / "events.jsonl").read_text()


def test_a_driver_with_one_class_is_judged_once(judge: Callable[..., Run]) -> None:
    run = judge(SUITE, "--profile", "full")
    assert set(run.verdicts.values()) == {"pass"}
    assert "test_of_core[" not in (run.folder / "events.jsonl").read_text()
