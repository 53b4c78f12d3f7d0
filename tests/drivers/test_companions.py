"""Loading and installing a driver with its companions."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed import folders
from testbed.drivers import all_manifests, load_with_companions
from testbed.errors import UsageError

DRIVERS = folders.data("manifests") / "drivers"
_FILE = """
apiVersion: dra-testbed/v1alpha1
kind: DriverFile
metadata: {{name: {name}}}
spec:
  driver: {driver}
  devices: {{classes: [{driver}], identity: {{attribute: uuid}}}}
  install: {{manifests: [{name}.template]}}
  companions: [{companions}]
  pods: {{namespace: shared, selector: app={name}, container: driver}}
  probe: {{command: [env], lines: '(?P<id>x)'}}
"""
_NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: {{ namespace }}}\n"
_OWN = (
    "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ driver_name }}, namespace: {{ namespace }}}\ndata: {}\n"
)


def write(folder: Path, name: str, driver: str, companions: str = "", extra: str = "") -> Path:
    (folder / f"{name}.template").write_text(_NAMESPACE + _OWN + extra)
    file = folder / f"{name}.yaml"
    file.write_text(_FILE.format(name=name, driver=driver, companions=companions))
    return file


def test_the_default_gpu_driver_has_the_nic_driver_as_companion() -> None:
    driver, companion = load_with_companions(DRIVERS / "fake-gpu.yaml")
    assert (driver.driver, companion.driver) == ("gpu.dra-testbed.example", "nic.dra-testbed.example")
    assert "companion" in driver.features
    assert "companion" not in companion.features
    assert load_with_companions(DRIVERS / "fake-nic.yaml") == (companion,)


def test_companions_of_companions_are_ignored(tmp_path: Path) -> None:
    write(tmp_path, "c", "c.example")
    write(tmp_path, "b", "b.example", "c.yaml")
    found = load_with_companions(write(tmp_path, "a", "a.example", "b.yaml"))
    assert [each.name for each in found] == ["a", "b"]


def test_objects_of_several_drivers_are_listed_once(tmp_path: Path) -> None:
    write(tmp_path, "b", "b.example")
    found = all_manifests(load_with_companions(write(tmp_path, "a", "a.example", "b.yaml")))
    assert [each["metadata"]["name"] for each in found] == ["shared", "a.example", "b.example"]


def test_two_drivers_with_one_name_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "b", "a.example")
    with pytest.raises(UsageError, match=r"and its companions have the same driver a\.example"):
        load_with_companions(write(tmp_path, "a", "a.example", "b.yaml"))


def test_hardware_is_passed_to_drivers_that_use_it_and_the_driver_under_test_must(tmp_path: Path) -> None:
    hardware = folders.data("manifests") / "hardware" / "gpus.yaml"
    takes = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: has-{{ hardware | length }}}\n"
    write(tmp_path, "b", "b.example")
    file = write(tmp_path, "a", "a.example", "b.yaml", takes)
    names = [each["metadata"]["name"] for each in all_manifests(load_with_companions(file), hardware=hardware)]
    assert names == ["shared", "a.example", f"has-{len(hardware.read_text())}", "b.example"]
    with pytest.raises(UsageError, match="driver b does not use --hardware"):
        all_manifests(load_with_companions(tmp_path / "b.yaml"), hardware=hardware)
