from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi
    from tests.fake_driver.mutants.conftest import StartMutant

DRIVER = "gpu.dra-testbed.example"


@pytest.mark.parametrize(("name", "has_mount"), [("", True), ("mounts-missing", False)])
def test_mounts_missing(mutant: StartMutant, fake_api: FakeApi, name: str, has_mount: bool) -> None:
    driver = mutant(name, metadata="v1beta1")
    assert not driver.prepare(fake_api.claim()).error
    (file,) = driver.cdi_files
    assert ("containerPath" in file.read_text()) is has_mount


@pytest.mark.parametrize(
    ("name", "namespaces", "versions"),
    [
        ("", {"default"}, ["v1beta1", "v1alpha1"]),
        ("metadata-of-another-namespace", {"elsewhere"}, ["v1beta1", "v1alpha1"]),
        ("metadata-oldest-first", {"default"}, ["v1alpha1", "v1beta1"]),
    ],
)
def test_namespace_and_order_of_versions(
    mutant: StartMutant, fake_api: FakeApi, name: str, namespaces: set[str], versions: list[str]
) -> None:
    driver = mutant(name, metadata="v1beta1,v1alpha1")
    assert not driver.prepare(fake_api.claim()).error
    (path,) = (driver.settings.data / "metadata").rglob("*.json")
    text = path.read_text()
    assert set(re.findall(r'"namespace": "(\w+)"', text)) == namespaces
    assert re.findall(r"metadata\.resource\.k8s\.io/(\w+)", text) == versions


@pytest.mark.parametrize(("name", "has_attributes"), [("", True), ("metadata-without-attributes", False)])
def test_metadata_without_attributes(mutant: StartMutant, fake_api: FakeApi, name: str, has_attributes: bool) -> None:
    driver = mutant(name, metadata="v1beta1")
    assert not driver.prepare(fake_api.claim()).error
    (path,) = (driver.settings.data / "metadata").rglob("*.json")
    assert ('"attributes"' in path.read_text()) is has_attributes


@pytest.mark.parametrize(
    ("name", "mounted"), [("", f"gpu/{DRIVER}-metadata.json"), ("mounts-hide-those-of-others", "gpu")]
)
def test_mounts_hide_those_of_others(mutant: StartMutant, fake_api: FakeApi, name: str, mounted: str) -> None:
    driver = mutant(name, metadata="v1beta1")
    assert not driver.prepare(fake_api.claim()).error
    (file,) = driver.cdi_files
    (mount,) = json.loads(file.read_text())["devices"][0]["containerEdits"]["mounts"]
    assert mount["containerPath"].endswith(f"/resourceclaims/one/{mounted}")
    assert (Path(mount["hostPath"]) / f"{DRIVER}-metadata.json").is_file() is bool(name)
