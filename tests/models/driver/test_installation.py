"""The install section of a driver file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from testbed.errors import UsageError
from tests.models.driver.files import FULL, load, refusal


def test_an_installed_driver_needs_no_install_section_and_runs_on_all_nodes(folder: Path) -> None:
    content = yaml.safe_load(FULL)
    del content["spec"]["install"], content["spec"]["nodes"]

    found = load(folder, yaml.safe_dump(content))

    assert found.install is None
    assert found.nodes.selector == {}


def test_a_folder_stands_for_the_manifests_in_it(folder: Path) -> None:
    for name in ("b.yml", "a.json", "notes.md"):
        (folder / "manifests" / name).write_text("")
    found = load(folder, FULL.replace("manifests/one.yaml", "manifests")).install
    assert found
    assert [each.name for each in found.manifests] == ["a.json", "b.yml", "one.yaml"]


def test_a_folder_without_manifests_is_refused(folder: Path) -> None:
    (folder / "empty").mkdir()
    assert "empty contains no file that ends with .yaml, .yml, .json" in refusal(folder, "manifests/one.yaml", "empty")


@pytest.mark.parametrize(
    ("install", "message"),
    [
        ("{images: [image.tar]}", "spec.install: has none of manifests, kustomize, chart, process, installed"),
        ("{installed: true, manifests: [manifests]}", "has manifests and installed of manifests,"),
        ("{installed: true, images: [image.tar]}", "has installed: true, so images has no effect"),
        ("{installed: true, builtInImage: true}", "has installed: true, so builtInImage has no effect"),
    ],
)
def test_a_driver_is_installed_in_one_way(folder: Path, install: str, message: str) -> None:
    content = yaml.safe_load(FULL)
    content["spec"]["install"] = yaml.safe_load(install)
    with pytest.raises(UsageError, match=re.escape(message)):
        load(folder, yaml.safe_dump(content))


def test_a_driver_that_is_installed_already_is_not_installed(folder: Path) -> None:
    content = yaml.safe_load(FULL)
    content["spec"]["install"] = {"installed": True}
    assert load(folder, yaml.safe_dump(content)).install is None


def test_the_previous_release_has_its_own_manifests_and_what_it_does_not_replace(folder: Path) -> None:
    previous = "    previous: {manifests: [manifests], variables: {replicas: 1}}\n    images"
    found = load(folder, FULL.replace("    images", previous)).previous
    assert found
    assert found.previous is None
    assert found.install
    assert found.install.manifests == tuple(sorted((folder / "manifests").glob("*.yaml")))
    assert found.install.variables == {"replicas": 1}
    assert found.install.images == (folder / "image.tar",)
    assert found.install.built_in_image


def test_a_previous_release_is_installed_in_one_way(folder: Path) -> None:
    message = refusal(folder, "    images", "    previous: {images: [image.tar]}\n    images")
    assert "spec.install.previous: has none of manifests, kustomize, chart" in message


def test_a_driver_file_without_previous_has_no_previous_release(folder: Path) -> None:
    assert load(folder, FULL).previous is None


def _process(folder: Path, process: str, pods: str = "") -> str:
    lines = [line for line in FULL.splitlines() if "pods:" not in line]
    text = "\n".join(lines).replace(
        "    manifests: [manifests/one.yaml]\n    builtInImage: true", f"    process: {process}"
    )
    return text.replace("  nodes:", f"{pods}  nodes:")


def test_a_program_beside_the_driver_file_is_copied_to_the_same_path(folder: Path) -> None:
    (folder / "plugin").touch()
    found = load(folder, _process(folder, "{command: [./plugin, --verbose], files: {/etc/acme: image.tar}}")).install
    assert found
    assert found.process
    program = str(folder / "plugin")
    assert found.process.argv == (program, "--verbose")
    assert found.process.copied == {"/etc/acme": folder / "image.tar", program: folder / "plugin"}


@pytest.mark.parametrize("program", ["plugin", "/usr/bin/plugin"])
def test_other_programs_are_those_of_the_node(folder: Path, program: str) -> None:
    found = load(folder, _process(folder, f"{{command: [{program}]}}")).install
    assert found
    assert found.process
    assert (found.process.argv, found.process.copied) == ((program,), {})


@pytest.mark.parametrize(
    ("process", "pods", "message"),
    [
        ("{command: [./gone]}", "", "spec.install.process: no such file"),
        ("{command: [a], files: {etc/acme: image.tar}}", "", "has etc/acme, but paths on the node must be absolute"),
        ("{command: [a]}", "  pods: {namespace: a, selector: a=b, container: c}\n", "so pods has no effect"),
    ],
)
def test_wrong_processes_are_refused(folder: Path, process: str, pods: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        load(folder, _process(folder, process, pods))


def test_a_driver_that_is_no_process_has_pods(folder: Path) -> None:
    old = "  pods: {namespace: dra-testbed-driver, selector: app=fake-gpu-driver, container: driver}\n"
    assert "must say how to find the driver's pods" in refusal(folder, old, "")
