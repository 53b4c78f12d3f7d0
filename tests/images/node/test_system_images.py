from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import TestbedError
from testbed.images.node import system_images
from testbed.images.node.system_images import BuildInputs
from testbed.images.oci import Image

REGISTRY = "registry.k8s.io"


@pytest.fixture
def inputs(program: Callable[[str, str], Path], debian: Path, sandbox: Image) -> BuildInputs:
    names = ("etcd", "kube-apiserver", "kube-proxy", "coredns")
    return BuildInputs({name: program(name, f"echo {name}") for name in names}, debian, sandbox)


def test_kubeadm_lists_the_required_images(program: Callable[[str, str], Path]) -> None:
    kubeadm = program("kubeadm", 'echo "$4 $5"; echo registry/etcd:3')

    assert system_images.required(kubeadm, "1.37.1") == ["--kubernetes-version", "v1.37.1", "registry/etcd:3"]


def test_a_component_is_the_last_part_of_the_name_without_the_tag() -> None:
    assert system_images.component("registry:5000/coredns/coredns:v1.14.6") == "coredns"


def test_only_coredns_may_be_missing(inputs: BuildInputs) -> None:
    names = [f"{REGISTRY}/coredns/coredns:v1", f"{REGISTRY}/etcd:3"]
    without = BuildInputs({}, inputs.root, inputs.sandbox)

    assert system_images.buildable(names, inputs) == names
    assert system_images.buildable(names, without) == names[1:]


@pytest.mark.parametrize(
    ("name", "path", "start"),
    [
        (f"{REGISTRY}/kube-apiserver:v1.37.1", "usr/local/bin/kube-apiserver", None),
        (f"{REGISTRY}/etcd:3.7.0-0", "usr/local/bin/etcd", None),
        (f"{REGISTRY}/kube-proxy:v1.37.1", "usr/local/bin/kube-proxy", None),
        (f"{REGISTRY}/coredns/coredns:v1.14.6", "coredns", ["/coredns"]),
    ],
)
def test_an_image_has_the_required_name_and_the_program_in_the_path_that_kubeadm_uses(
    name: str,
    path: str,
    start: list[str] | None,
    inputs: BuildInputs,
    tmp_path: Path,
    read_archive: Callable[[Path], Any],
) -> None:
    system_images.write(name, inputs, tmp_path / "image.tar", tmp_path)

    image = read_archive(tmp_path / "image.tar")
    assert image.json("manifest.json")[0]["RepoTags"] == [name]
    assert image.layer(0, tmp_path)[path].mode == 0o755
    assert image.config["config"].get("Entrypoint") == start
    assert image.config["config"]["Env"][0].startswith("PATH=/usr/local/sbin:/usr/local/bin:")


def test_the_pause_image_is_our_sandbox_image_under_another_name(
    inputs: BuildInputs, tmp_path: Path, read_archive: Callable[[Path], Any]
) -> None:
    system_images.write(f"{REGISTRY}/pause:3.10", inputs, tmp_path / "image.tar", tmp_path)

    ours, theirs = read_archive(inputs.sandbox.archive), read_archive(tmp_path / "image.tar")
    assert theirs.json("manifest.json")[0]["RepoTags"] == [f"{REGISTRY}/pause:3.10"]
    assert _layers(theirs.manifest) == _layers(ours.manifest)


def test_an_unknown_image_is_an_error(inputs: BuildInputs, tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="cannot build image kube-novelty, which this version of kubeadm needs"):
        system_images.write(f"{REGISTRY}/kube-novelty:v2", inputs, tmp_path / "image.tar", tmp_path)


def _layers(manifest: Mapping[str, Any]) -> list[str]:
    return [layer["digest"] for layer in manifest["layers"]]
