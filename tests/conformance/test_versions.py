from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

import pytest
import yaml

from testbed import folders
from testbed.conformance import versions
from testbed.conformance.run_started import run_started
from testbed.models.config import TestbedConfig
from testbed.models.report import Environment
from testbed.models.run_request import RunRequest
from tests.fakes import cluster

DRIVER = "gpu.dra-testbed.example"
ID = "sha256:" + "a" * 64


def _with_version(folder: Path, version: str) -> Path:
    shutil.copytree(cluster.driver_path().parents[1], folder / "manifests")
    file = folder / "manifests/drivers/fake-gpu.yaml"
    content = yaml.safe_load(file.read_text())
    content["spec"]["version"] = version
    file.write_text(yaml.safe_dump(content))
    return file


def test_the_version_is_that_of_the_driver_file(tmp_path: Path) -> None:
    file = _with_version(tmp_path, "1.4.2")

    found = versions.describe(file, {DRIVER: {"localhost/driver:1": ID}})

    assert (found["version"], found["images"]) == ("1.4.2", {"localhost/driver:1": ID})
    assert found["digest"] == f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"


@pytest.mark.parametrize(
    ("images", "version"),
    [
        ({"localhost/driver:1": ID}, f"localhost/driver:1@{ID}"),
        ({"localhost/driver:1": f"localhost/driver@{ID}"}, f"localhost/driver@{ID}"),
        ({"localhost/driver:1": ID, "localhost/other:1": ID}, ""),
        ({}, ""),
    ],
)
def test_without_a_version_the_only_image_of_the_driver_is_its_version(images: dict[str, str], version: str) -> None:
    assert versions.describe(cluster.driver_path(), {DRIVER: images})["version"] == version


def test_a_program_beside_the_driver_file_is_its_version_and_not_the_image_of_its_pods(tmp_path: Path) -> None:
    content = yaml.safe_load(cluster.driver_path().read_text())
    for key in ("pods", "control", "companions"):
        content["spec"].pop(key)
    content["spec"]["install"] = {"process": {"command": ["./plugin"]}}
    (tmp_path / "plugin").write_text("program")
    (tmp_path / "driver.yaml").write_text(yaml.safe_dump(content))
    found = versions.describe(tmp_path / "driver.yaml", {content["spec"]["driver"]: {"busybox:1": "sha256:1"}})
    assert found["version"] == f"plugin@sha256:{hashlib.sha256(b'program').hexdigest()}"
    assert found["images"] == {}


def test_the_digest_of_the_harness_changes_with_its_code_suites_and_manifests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("testbed", "suites", "manifests/suites"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "one.py").write_text("1")
    monkeypatch.setattr(folders, "packages", lambda: tmp_path)
    monkeypatch.setattr(folders, "data", lambda name: tmp_path / name)
    seen = {versions.harness_digest()}
    for name in ("testbed", "suites", "manifests/suites"):
        (tmp_path / name / "one.py").write_text("2")
        seen.add(versions.harness_digest())
    (tmp_path / "testbed/__pycache__").mkdir()
    (tmp_path / "testbed/__pycache__/one.py").write_text("3")

    assert len(seen) == 4
    assert versions.harness_digest() in seen


def test_a_run_says_what_is_judged_and_what_judges() -> None:
    request = RunRequest(testbed="t", new_testbed=TestbedConfig("t"), report=Path("/b/report"))
    environment = Environment(testbed="t", provider="local", kubernetes="v1.37.0", nodes=2, runtime="containerd://2")

    started = run_started(
        request, cluster.driver_path(), environment, {"nic.dra-testbed.example": {"localhost/nic:1": ID}}
    )

    companions = started["companions"]
    assert isinstance(companions, list)
    assert [(each["driver"], each["images"]) for each in companions] == [
        ("nic.dra-testbed.example", {"localhost/nic:1": ID})
    ]
    generated = started["generated"]
    assert isinstance(generated, dict)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", generated["digest"])
