"""What a driver file refers to is checked before there is a cluster."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
import yaml

from testbed.bringup.resolved_config import resolve
from testbed.errors import UsageError
from testbed.models.config import effective
from tests.fakes import cluster

GOOD = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: x}}"


def _driver(folder: Path, manifest: str = GOOD, archive: Path | None = None) -> Path:
    """Write a driver file with one manifest, and with an image archive."""
    content = yaml.safe_load(cluster.driver_path().read_text())
    del content["spec"]["companions"]
    content["spec"]["install"] = {"manifests": ["m.yaml"], **({"images": [str(archive)]} if archive else {})}
    file = folder / "driver.yaml"
    file.write_text(yaml.safe_dump(content))
    (folder / "m.yaml").write_text(manifest)
    return file


def _resolve(file: Path) -> None:
    resolve(effective(None, {"driver": str(file)}))


def _tar(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w") as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    return path


def test_a_correct_manifest_and_archive_are_accepted(tmp_path: Path) -> None:
    _resolve(_driver(tmp_path, archive=_tar(tmp_path / "a.tar", "blobs", "index.json")))
    _resolve(_driver(tmp_path, archive=_tar(tmp_path / "b.tar", "./manifest.json")))


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("a: [", "is not valid YAML after rendering"),
        ("just text", "not a Kubernetes object"),
        ("{kind: ConfigMap, metadata: {name: x}}", "not a Kubernetes object"),
        ("{apiVersion: v1, kind: config map, metadata: {name: x}}", "invalid kind: 'config map'"),
        ("{apiVersion: 1, kind: ConfigMap, metadata: {name: x}}", "invalid apiVersion: 1"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a/b}}", "invalid metadata.name: 'a/b'"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: [b]}}", "invalid metadata.namespace"),
        (f"{GOOD}\n---\n{{{{ unknown_variable }}}}", "unknown_variable"),
    ],
)
def test_a_wrong_manifest_is_refused_before_there_is_a_cluster(tmp_path: Path, manifest: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        _resolve(_driver(tmp_path, manifest))


def test_a_file_that_is_no_image_archive_is_refused_before_there_is_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "text.tar").write_text("no archive")
    whole = _tar(tmp_path / "whole.tar", *map(str, range(100)), "index.json").read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[:1300])
    for name, said in (("text.tar", "cannot be read"), ("cut.tar", "cannot be read|no image")):
        with pytest.raises(UsageError, match=said):
            _resolve(_driver(tmp_path, archive=tmp_path / name))
    with pytest.raises(UsageError, match=r"contains neither index\.json nor manifest\.json"):
        _resolve(_driver(tmp_path, archive=_tar(tmp_path / "other.tar", "x")))
