from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.drivers import install, uninstall
from testbed.errors import TestbedError, UsageError, WaitTimeout
from testbed.models.driver_file import DriverFile, load_driver_file
from testbed.waiting import set_patience
from tests.fakes import cluster
from tests.fakes.kube import FakeKube


@pytest.fixture(autouse=True)
def _impatient() -> Iterator[None]:
    set_patience(0.001)
    yield
    set_patience(1.0)


def _file(folder: Path, template: str) -> DriverFile:
    (folder / "all.yaml").write_text(template)
    (folder / "driver.yaml").write_text(
        "apiVersion: dra-testbed/v1alpha1\nkind: DriverFile\nmetadata: {name: mine}\nspec:\n"
        "  driver: mine.example\n  deviceClass: mine.example\n"
        "  install: {manifests: [all.yaml], variables: {level: 4}}\n"
        "  pods: {namespace: mine, selector: app=mine, container: driver}\n"
        "  probe: {command: [env], matches: '(?P<id>x)', identityAttribute: uuid}\n"
    )
    return load_driver_file(folder / "driver.yaml")


_TEMPLATE = """
kind: Namespace
metadata: {name: {{ namespace }}}
---
---
kind: ConfigMap
metadata: {name: settings, namespace: {{ namespace }}}
data: {driver: {{ driver_name }}, level: "{{ level }}"}
"""


def test_manifests_are_rendered_and_applied_in_their_order(tmp_path: Path) -> None:
    kube: Any = FakeKube()
    install(kube, _file(tmp_path, _TEMPLATE))
    assert [key[0] for key in kube.objects] == ["Namespace", "ConfigMap"]
    assert kube.objects["ConfigMap", "mine", "settings"]["data"] == {"driver": "mine.example", "level": "4"}


def test_uninstalling_goes_backwards_and_twice_is_fine(tmp_path: Path) -> None:
    kube: Any = FakeKube()
    driver_file = _file(tmp_path, _TEMPLATE)
    install(kube, driver_file)
    uninstall(kube, driver_file)
    uninstall(kube, driver_file)
    assert kube.deleted == ["ConfigMap/settings", "Namespace/mine"]


def test_uninstalling_waits_for_the_drivers_pods(tmp_path: Path) -> None:
    kube: Any = FakeKube()
    kube.put("Pod", "mine-1", "mine", metadata={"labels": {"app": "mine"}})
    with pytest.raises(WaitTimeout, match="still there: mine-1"):
        uninstall(kube, _file(tmp_path, _TEMPLATE))


def test_our_own_drivers_manifests_render_with_the_hardware_that_is_asked_for(tmp_path: Path) -> None:
    kube: Any = FakeKube()
    hardware = tmp_path / "hardware.yaml"
    hardware.write_text("apiVersion: dra-testbed/v1alpha1\nkind: Hardware\n# two lines: {{ no template }}\n")
    install(kube, load_driver_file(cluster.driver_path()), image="localhost/driver:1", hardware=hardware)
    (daemonset,) = kube.list("apps/v1", "DaemonSet")
    assert daemonset["spec"]["template"]["spec"]["containers"][0]["image"] == "localhost/driver:1"
    (config,) = kube.list("v1", "ConfigMap")
    assert config["data"]["hardware.yaml"].strip() == hardware.read_text().strip()


def test_a_mutant_differs_in_its_fault_alone() -> None:
    right, wrong = FakeKube(), FakeKube()
    path = cluster.driver_path()
    for kube, file in ((right, path), (wrong, path.parent / "mutants" / "fake-gpu-shares-one-device.yaml")):
        install(kube, load_driver_file(file), image="i")  # type: ignore[arg-type]  # the fake
    differing = [key for key in right.objects if right.objects[key] != wrong.objects[key]]
    assert right.objects.keys() == wrong.objects.keys()
    assert [key[0] for key in differing] == ["DaemonSet"]
    assert "share-one-device" in str(wrong.objects[differing[0]])


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("kind: Pod\nmetadata: {name: {{ nobody_said }}}", "nobody_said"),
        ("kind: [", "is not YAML once its variables are filled in"),
    ],
)
def test_a_bad_manifest_is_the_users_error_and_nothing_is_applied(tmp_path: Path, template: str, said: str) -> None:
    kube: Any = FakeKube()
    with pytest.raises(UsageError, match=said):
        install(kube, _file(tmp_path, "kind: A\nmetadata: {name: a}\n---\n" + template))
    assert kube.objects == {}


def test_what_is_no_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="not a Kubernetes object"):
        install(FakeKube(), _file(tmp_path, "metadata: {name: a}"))  # type: ignore[arg-type]  # the fake
