"""What a driver file refers to is checked before there is a cluster."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
import yaml

from testbed.bringup.resolved_config import resolve
from testbed.drivers import early_checks
from testbed.errors import UsageError
from testbed.models.config import effective
from testbed.models.driver.install import Install
from testbed.models.driver_file import Pods, load_driver_file
from tests.fakes import cluster
from tests.fakes.driver_files import with_values

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


_PODS = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: plugin, namespace: acme}
spec:
  template:
    metadata: {labels: {app: acme-plugin, tier: node}}
    spec: {containers: [{name: plugin}, {name: metrics}]}
"""


def _wrong_pods(folder: Path, **pods: str) -> list[str]:
    (folder / "install.yaml").write_text(_PODS)
    given = {"namespace": "acme", "selector": "app=acme-plugin", "container": "plugin", **pods}
    file = load_driver_file(cluster.driver_path())
    file = with_values(file, install=Install(manifests=(folder / "install.yaml",)), pods=Pods(**given))
    return [str(each) for each in early_checks.wrong_pods(file)]


@pytest.mark.parametrize(
    ("pods", "problem"),
    [
        ({}, ""),
        ({"selector": "app=acme-plugin,tier=node"}, ""),
        (
            {"selector": "app=acme-plugn"},
            "spec.pods.selector: no pod matches app=acme-plugn; did you mean app=acme-plugin?",
        ),
        (
            {"namespace": "acme-system"},
            "spec.pods.namespace: no pod in acme-system matches app=acme-plugin, but pods in acme do",
        ),
        (
            {"container": "plugn"},
            "spec.pods.container: no pod of the driver has a container plugn; did you mean plugin?",
        ),
        ({"selector": "component=worker"}, ""),
        ({"selector": "app in (acme-plugn)"}, ""),
    ],
    ids=["right", "two labels", "selector", "namespace", "container", "of an operator", "not plain"],
)
def test_pods_are_compared_with_the_manifests(tmp_path: Path, pods: dict[str, str], problem: str) -> None:
    assert _wrong_pods(tmp_path, **pods) == ([problem] if problem else [])
