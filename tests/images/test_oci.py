from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.images import oci, tarball
from testbed.images.oci import ContainerSettings

REFERENCE = "localhost/dra-testbed/thing:1"
SETTINGS = ContainerSettings(
    entrypoint=("/run", "now"), cmd=("a",), env={"PATH": "/bin"}, user="1:2", working_dir="/tmp"
)


@pytest.fixture
def layers(tmp_path: Path) -> list[oci.Layer]:
    first = oci.write_layer([tarball.file("run", b"first", 0o755)], tmp_path / "first.tar")
    return [first, oci.write_layer([tarball.file("data", b"second")], tmp_path / "second.tar")]


@pytest.fixture
def archive(tmp_path: Path, layers: list[oci.Layer]) -> Path:
    config = oci.configuration(SETTINGS, layers, ["the first", "the second"])
    oci.write_archive(REFERENCE, config, layers, tmp_path / "image.tar")
    return tmp_path / "image.tar"


def _sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_blobs_are_named_after_their_digests_and_descriptors_have_their_sizes(
    archive: Path, read_archive: Callable[[Path], Any]
) -> None:
    image = read_archive(archive)
    manifest = image.manifest

    for path, content in image.files.items():
        if path.startswith("blobs/"):
            assert path == "blobs/" + _sha256(content).replace(":", "/")
    for descriptor in (image.json("index.json")["manifests"][0], manifest["config"], *manifest["layers"]):
        assert len(image.blob(descriptor["digest"])) == descriptor["size"]


def test_the_oci_layout_has_the_media_types_and_annotations_that_runtimes_expect(
    archive: Path, read_archive: Callable[[Path], Any]
) -> None:
    image = read_archive(archive)
    (listed,) = image.json("index.json")["manifests"]

    assert image.json("oci-layout") == {"imageLayoutVersion": "1.0.0"}
    assert listed["mediaType"] == image.manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
    assert listed["annotations"] == {
        "io.containerd.image.name": REFERENCE,
        "org.opencontainers.image.ref.name": REFERENCE,
    }
    assert listed["platform"] == {"architecture": oci.architecture(), "os": "linux"}
    assert image.manifest["config"]["mediaType"] == "application/vnd.oci.image.config.v1+json"
    assert {layer["mediaType"] for layer in image.manifest["layers"]} == {"application/vnd.oci.image.layer.v1.tar"}


def test_the_configuration_has_the_container_settings_and_the_digests_of_the_layers(
    archive: Path, read_archive: Callable[[Path], Any], layers: list[oci.Layer]
) -> None:
    config = read_archive(archive).config

    assert config["architecture"] in {"amd64", "arm64"}
    assert config["config"] == {
        "Entrypoint": ["/run", "now"], "Cmd": ["a"], "Env": ["PATH=/bin"], "User": "1:2", "WorkingDir": "/tmp"
    }  # fmt: skip
    assert config["rootfs"] == {"type": "layers", "diff_ids": [_sha256(layer.file.read_bytes()) for layer in layers]}
    assert [line["created_by"] for line in config["history"]] == ["the first", "the second"]


def test_the_same_archive_has_a_docker_manifest(archive: Path, read_archive: Callable[[Path], Any]) -> None:
    image = read_archive(archive)
    (entry,) = image.json("manifest.json")

    assert entry["RepoTags"] == [REFERENCE]
    assert image.json(entry["Config"]) == image.config
    assert [_sha256(image.files[layer]) for layer in entry["Layers"]] == image.config["rootfs"]["diff_ids"]


def test_the_same_image_gives_the_same_bytes_and_another_name_gives_others(
    archive: Path, tmp_path: Path, layers: list[oci.Layer]
) -> None:
    config = oci.configuration(SETTINGS, layers, ["the first", "the second"])
    digest = oci.write_archive(REFERENCE, config, layers, tmp_path / "again.tar")
    other = oci.write_archive("localhost/other:1", config, layers, tmp_path / "other.tar")

    assert archive.read_bytes() == (tmp_path / "again.tar").read_bytes()
    assert archive.read_bytes() != (tmp_path / "other.tar").read_bytes()
    assert digest == other


def test_the_returned_digest_is_that_of_the_manifest(
    archive: Path, read_archive: Callable[[Path], Any], layers: list[oci.Layer], tmp_path: Path
) -> None:
    config = oci.configuration(SETTINGS, layers, ["the first", "the second"])

    digest = oci.write_archive(REFERENCE, config, layers, tmp_path / "again.tar")

    assert digest == read_archive(archive).json("index.json")["manifests"][0]["digest"]


def test_two_layers_with_the_same_content_share_a_blob(
    tmp_path: Path, layers: list[oci.Layer], read_archive: Callable[[Path], Any]
) -> None:
    twice = [layers[0], layers[0]]

    oci.write_archive(REFERENCE, oci.configuration(SETTINGS, twice, ["", ""]), twice, tmp_path / "image.tar")

    assert len([path for path in read_archive(tmp_path / "image.tar").files if path.startswith("blobs/")]) == 3
