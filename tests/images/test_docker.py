from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import CommandFailed, TestbedError
from testbed.images import docker
from testbed.progress import Step

REFERENCE = "localhost/dra-testbed/driver:0123456789ab"
PLAIN, PACKED = b"a layer" * 100, gzip.compress(b"another layer", mtime=0)
CONFIG = json.dumps(
    {"architecture": "arm64", "os": "linux", "variant": "v8", "rootfs": {"diff_ids": ["sha256:1", "sha256:2"]}}
).encode()


def _saved(file: Path, images: int = 1) -> Path:
    listed = [{"Config": "abc.json", "RepoTags": [REFERENCE], "Layers": ["one/layer.tar", "two/layer.tar"]}] * images
    content = {
        "manifest.json": json.dumps(listed).encode(),
        "abc.json": CONFIG,
        "one/layer.tar": PLAIN,
        "two/layer.tar": PACKED,
    }
    with tarfile.open(file, "w") as tar:
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file


def test_the_output_of_docker_save_is_converted_to_an_oci_archive(
    tmp_path: Path, read_archive: Callable[[Path], Any]
) -> None:
    digest = docker.rewrite(_saved(tmp_path / "saved.tar"), REFERENCE, tmp_path / "image.tar", tmp_path)

    image = read_archive(tmp_path / "image.tar")
    (listed,) = image.json("index.json")["manifests"]
    assert listed["digest"] == digest
    assert listed["platform"] == {"architecture": "arm64", "os": "linux", "variant": "v8"}
    assert image.blob(image.manifest["config"]["digest"]) == CONFIG
    assert [(layer["mediaType"][-4:], layer["digest"]) for layer in image.manifest["layers"]] == [
        (".tar", f"sha256:{hashlib.sha256(PLAIN).hexdigest()}"),
        ("gzip", f"sha256:{hashlib.sha256(PACKED).hexdigest()}"),
    ]


def test_an_archive_of_two_images_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match=r"wrote 2 images to .*saved\.tar, expected one"):
        docker.rewrite(_saved(tmp_path / "saved.tar", images=2), REFERENCE, tmp_path / "image.tar", tmp_path)


def test_docker_is_available_only_if_its_engine_answers(
    tmp_path: Path, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    script("docker", "echo 28.2.2")
    assert docker.is_available()

    script("docker", "echo Cannot connect to the Docker daemon >&2; exit 1")
    assert not docker.is_available()

    monkeypatch.setenv("PATH", str(tmp_path))
    assert not docker.is_available()


def test_an_image_is_built_from_our_files_saved_and_removed_from_the_engine(
    tmp_path: Path, script: Any, installation: Path, read_archive: Callable[[Path], Any]
) -> None:
    log, saved = tmp_path / "log", _saved(tmp_path / "prepared.tar")
    script(
        "docker",
        f'echo "$1 $2" >> {log}\ncase $1 in build) for last; do :; done; (cd "$last" && find . -type f | sort) >> {log};;'
        f' save) cp {saved} "$3";; esac',
    )

    facts = docker.build(REFERENCE, installation, tmp_path / "image.tar", tmp_path, Step("t"))

    assert log.read_text().splitlines() == [
        "build --tag", "./ci/Dockerfile", "./ci/driver-requirements.txt", "./fake_driver/__init__.py", "./testbed/__init__.py",
        "./testbed/kubelet/__init__.py", "./testbed/kubelet/stubs/dra.py", "save --output", "image rm",
    ]  # fmt: skip
    assert facts["digest"] == read_archive(tmp_path / "image.tar").json("index.json")["manifests"][0]["digest"]


def test_the_error_of_a_failed_build_has_its_output(tmp_path: Path, script: Any, installation: Path) -> None:
    script("docker", "echo failed to resolve source metadata; exit 1")

    with pytest.raises(CommandFailed, match="failed to resolve source metadata"):
        docker.build(REFERENCE, installation, tmp_path / "image.tar", tmp_path, Step("t"))


def test_the_dockerfile_pins_its_base_and_checks_hashes() -> None:
    text = docker.dockerfile().read_text()

    assert [line for line in text.splitlines() if line.startswith("FROM") and "@sha256:" not in line] == [
        "FROM scratch"
    ]
    assert "--require-hashes" in text
