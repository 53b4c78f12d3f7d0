"""Replacing the installed release of a driver by the previous one, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.drivers import releases, releases_of
from testbed.drivers.releases import Releases
from testbed.errors import ApiError, UsageError
from testbed.kube.ownership import Owner
from testbed.models.driver_file import DriverFile, load_driver_file
from tests.fakes.kube import FakeKube

OWNER = Owner("mine", "0123456789ab")
_DRIVER_FILE = """
apiVersion: dra-testbed/v1alpha1
kind: DriverFile
metadata: {name: mine}
spec:
  driver: mine.example
  install:
    manifests: [new.yaml]
    variables: {version: 2, level: 4}
    previous: {manifests: [old.yaml], variables: {version: 1}}
  pods: {namespace: mine, selector: app=mine, container: driver}
  devices: {classes: [mine.example]}
  probe: {env: '^MINE_(?P<name>\\S+)='}
"""
_BOTH = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: driver, namespace: {{ namespace }}}
spec: {template: {metadata: {labels: {app: mine}}, spec: {containers: [{name: driver, image: "mine:{{ version }}-{{ level }}"}]}}}
---
apiVersion: v1
kind: ConfigMap
"""
_NEW = "metadata: {name: new, namespace: mine}\n---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: new}\n"
_OLD = "metadata: {name: old, namespace: mine}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: old, namespace: mine}\n"


@pytest.fixture
def driver_file(tmp_path: Path) -> DriverFile:
    (tmp_path / "new.yaml").write_text(_BOTH + _NEW)
    (tmp_path / "old.yaml").write_text(_BOTH + _OLD)
    (tmp_path / "driver.yaml").write_text(_DRIVER_FILE)
    return load_driver_file(tmp_path / "driver.yaml")


@pytest.fixture
def kube(driver_file: DriverFile, tmp_path: Path) -> Any:
    """Return a cluster in which this release is installed, with both releases in the folder of the testbed."""
    kube: Any = FakeKube()
    found = releases_of(kube, [driver_file], image="", hardware=None, images_are_loaded=False)
    assert found
    found.write(tmp_path)
    releases.replace_by_current(kube, OWNER, tmp_path)
    return kube


def _image(kube: Any) -> str:
    template = kube.objects["DaemonSet", "mine", "driver"]["spec"]["template"]
    return str(template["spec"]["containers"][0]["image"])


def _names(kube: Any) -> set[str]:
    return {f"{kind}/{name}" for kind, _, name in kube.objects}


def test_the_previous_release_is_installed_and_this_one_again(kube: Any, tmp_path: Path) -> None:
    before = _names(kube)
    assert (before, _image(kube)) == ({"DaemonSet/driver", "ConfigMap/new", "DeviceClass/new"}, "mine:2-4")

    releases.replace_by_previous(kube, OWNER, tmp_path, "run-main")
    releases.remove_what_previous_lacks(kube, OWNER, tmp_path)
    assert _image(kube) == "mine:1-4"
    assert _names(kube) == {"DaemonSet/driver", "ConfigMap/old", "Deployment/old", "DeviceClass/new"}

    releases.replace_by_current(kube, OWNER, tmp_path)
    assert "Deployment/old" not in _names(kube)
    releases.remove_what_current_lacks(kube, OWNER, tmp_path)
    assert (_names(kube), _image(kube)) == (before, "mine:2-4")


def test_the_pods_are_replaced_if_both_releases_have_the_same_template(kube: Any, tmp_path: Path) -> None:
    found = releases.read(tmp_path)
    Releases(found.driver, found.current, found.current).write(tmp_path)
    template = kube.objects["DaemonSet", "mine", "driver"]["spec"]["template"]
    releases.replace_by_previous(kube, OWNER, tmp_path, "run-main")
    assert kube.objects["DaemonSet", "mine", "driver"]["spec"]["template"] != template


def test_this_release_is_restored_after_a_killed_session(kube: Any, driver_file: DriverFile, tmp_path: Path) -> None:
    before = _names(kube)
    releases.replace_by_previous(kube, OWNER, tmp_path, "killed-main")
    kube.put("Pod", "driver-1", "mine", metadata={"labels": {"app": "mine"}})
    target = (kube, OWNER, tmp_path, driver_file)
    assert not releases.restore(*target, lambda process: process == "other-main")
    assert _image(kube) == "mine:1-4"

    assert releases.restore(*target, lambda process: process == "killed-main")
    assert (_names(kube), _image(kube)) == (before, "mine:2-4")
    assert not releases.restore(*target, lambda _: True)


class _Immutable(FakeKube):
    """A cluster in which the spec of an existing DaemonSet cannot be changed."""

    def apply(self, manifest: Any, **given: Any) -> Any:
        found = self.find("", manifest["kind"], manifest["metadata"]["name"], manifest["metadata"].get("namespace"))
        if found and manifest["kind"] == "DaemonSet":
            raise ApiError("PATCH DaemonSet", 422, "Invalid", "spec.selector: Invalid value: field is immutable")
        return super().apply(manifest, **given)


def test_an_object_with_a_field_that_cannot_be_changed_is_deleted_first(kube: Any, tmp_path: Path) -> None:
    strict: Any = _Immutable()
    strict.objects = kube.objects
    releases.replace_by_previous(strict, OWNER, tmp_path, "run-main")
    assert strict.deleted == ["DaemonSet/driver"]
    assert _image(strict) == "mine:1-4"


def test_a_testbed_without_the_previous_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"brought up without spec\.install\.previous"):
        releases.read(tmp_path)


def test_a_driver_file_without_a_previous_release_has_no_releases(driver_file: DriverFile) -> None:
    assert driver_file.previous
    kube: Any = FakeKube()
    found = releases_of(kube, [driver_file.previous], image="", hardware=None, images_are_loaded=False)
    assert found is None
