from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.drivers import install, uninstall
from testbed.drivers.install import manifests
from testbed.errors import ApiError, TestbedError, UsageError, WaitTimeout
from testbed.kube.ownership import Owner
from testbed.models.driver_file import DriverFile, load_driver_file
from tests.fakes import cluster
from tests.fakes.kube import FakeKube

OWNER = Owner("mine", "0123456789ab", "here", pid=7)


def _file(folder: Path, template: str) -> DriverFile:
    (folder / "all.yaml").write_text(template)
    (folder / "driver.yaml").write_text(
        "apiVersion: dra-testbed/v1alpha1\nkind: DriverFile\nmetadata: {name: mine}\nspec:\n"
        "  driver: mine.example\n  devices: {classes: [mine.example], identity: {attribute: uuid}}\n"
        "  install: {manifests: [all.yaml], variables: {level: 4}}\n"
        "  pods: {namespace: mine, selector: app=mine, container: driver}\n"
        "  probe: {command: [env], lines: '(?P<id>x)'}\n"
    )
    return load_driver_file(folder / "driver.yaml")


_TEMPLATE = """
apiVersion: v1
kind: Namespace
metadata: {name: {{ namespace }}}
---
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: {{ namespace }}}
data: {driver: {{ driver_name }}, level: "{{ level }}"}
"""


def test_manifests_are_rendered_and_applied_in_order(tmp_path: Path) -> None:
    kube: Any = FakeKube()
    install(kube, _file(tmp_path, _TEMPLATE), OWNER)
    assert [key[0] for key in kube.objects] == ["Namespace", "ConfigMap"]
    assert kube.objects["ConfigMap", "mine", "settings"]["data"] == {"driver": "mine.example", "level": "4"}


def test_uninstalling_deletes_in_reverse_order_and_is_idempotent(tmp_path: Path) -> None:
    kube: Any = FakeKube()
    driver_file = _file(tmp_path, _TEMPLATE)
    install(kube, driver_file, OWNER)
    uninstall(kube, driver_file, OWNER)
    uninstall(kube, driver_file, OWNER)
    assert kube.deleted == ["ConfigMap/settings", "Namespace/mine"]


@pytest.mark.parametrize("answer", [429, 503, 504])
def test_applying_is_retried_while_the_api_server_is_overloaded(tmp_path: Path, answer: int) -> None:
    class Busy(FakeKube):
        def apply(self, manifest: Any, **how: Any) -> Any:
            if answers:
                raise ApiError("PATCH", answers.pop(), "Timeout", "request did not complete")
            return super().apply(manifest, **how)

    kube: Any = Busy()
    answers = [answer]
    install(kube, _file(tmp_path, _TEMPLATE), OWNER)
    assert len(kube.objects) == 2
    answers = [403]
    with pytest.raises(ApiError):
        install(kube, _file(tmp_path, _TEMPLATE), OWNER)


def test_uninstalling_deletes_by_uid(tmp_path: Path) -> None:
    class Seen(FakeKube):
        def delete(self, target: Any, **how: Any) -> None:
            uids.append(target["metadata"].get("uid"))
            super().delete(target, **how)

    uids: list[str] = []
    kube: Any = Seen()
    install(kube, _file(tmp_path, _TEMPLATE), OWNER)
    for number, each in enumerate(kube.objects.values()):
        each["metadata"]["uid"] = str(number)
    uninstall(kube, _file(tmp_path, _TEMPLATE), OWNER)
    assert uids == ["1", "0"]


def test_uninstalling_waits_for_the_drivers_pods(tmp_path: Path) -> None:
    kube: Any = FakeKube()
    kube.put("Pod", "mine-1", "mine", metadata={"labels": {"app": "mine"}})
    with pytest.raises(WaitTimeout, match="pods still exist: mine-1"):
        uninstall(kube, _file(tmp_path, _TEMPLATE), OWNER)


def test_the_fake_drivers_manifests_render_with_the_given_hardware(tmp_path: Path) -> None:
    kube: Any = FakeKube()
    hardware = tmp_path / "hardware.yaml"
    hardware.write_text("apiVersion: dra-testbed/v1alpha1\nkind: Hardware\n# two lines: {{ no template }}\n")
    install(kube, load_driver_file(cluster.driver_path()), OWNER, image="localhost/driver:1", hardware=hardware)
    (daemonset,) = kube.list("apps/v1", "DaemonSet")
    assert daemonset["spec"]["template"]["spec"]["containers"][0]["image"] == "localhost/driver:1"
    (config,) = kube.list("v1", "ConfigMap")
    assert config["data"]["hardware.yaml"].strip() == hardware.read_text().strip()


def test_hardware_replaces_a_variable_from_a_file(tmp_path: Path) -> None:
    path = cluster.driver_path()
    driver_file = load_driver_file(path)
    other = path.parents[1] / "hardware/gpus.yaml"
    for hardware, shown in ((None, path.parents[1] / "hardware/server.yaml"), (other, other)):
        kube: Any = FakeKube()
        install(kube, driver_file, OWNER, image="i", hardware=hardware)
        (config,) = kube.list("v1", "ConfigMap")
        assert config["data"]["hardware.yaml"].strip() == shown.read_text().strip()


_NETWORK = {"apiVersion": "dra-testbed/v1alpha1", "kind": "Hardware", "metadata": {"name": "x"}}
_ALL_NODES = {"name": "fabric", "allNodes": True, "devices": [{"kind": "port", "count": 1}]}
_ATTACHED = {"kind": "gpu", "count": 1, "attaching": {"seconds": 1}}


def _network_parts(folder: Path, text: str) -> tuple[bool, bool]:
    """Return whether there is a network driver, and whether node drivers may report about network-attached devices."""
    (folder / "hardware.yaml").write_text(text)
    driver_file = load_driver_file(cluster.driver_path())
    found = manifests(driver_file, image="localhost/driver:1", hardware=folder / "hardware.yaml")
    (rights,) = [
        each for each in found if each["kind"] == "ClusterRole" and each["metadata"]["name"] == driver_file.driver
    ]
    (policy,) = [
        each
        for each in found
        if each["metadata"]["name"] == f"{driver_file.driver}-claims" and "variables" in each["spec"]
    ]
    (may,) = {"arbitrary-node:patch" in str(rights), "mayBeHere" in str(policy)}
    return any(each["kind"] == "Deployment" for each in found), may


@pytest.mark.parametrize(
    ("spec", "network", "may"),
    [
        ({"pools": [_ALL_NODES]}, True, True),
        ({"pools": [{**_ALL_NODES, "devices": [_ATTACHED]}]}, True, True),
        ({"devices": [_ATTACHED]}, True, False),
        ({"devices": [{"kind": "gpu", "count": 1, "attributes": {"attaching": "no", "pools:": "no"}}]}, False, False),
        ({"pools": []}, False, False),
        ({"pools": "none", "devices": {"attaching": {}}}, False, False),
        ([], False, False),
    ],
)
@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump], ids=["json", "yaml"])
def test_network_parts_are_created_if_the_hardware_needs_them(
    tmp_path: Path, write: Callable[[object], str], spec: object, network: bool, may: bool
) -> None:
    assert _network_parts(tmp_path, write({**_NETWORK, "spec": spec})) == (network, may)


def test_a_comment_in_the_hardware_file_adds_no_permissions(tmp_path: Path) -> None:
    text = "# pools: none, attaching: none\n" + yaml.safe_dump({**_NETWORK, "spec": {}})
    assert _network_parts(tmp_path, text) == (False, False)


def test_a_mutant_differs_only_in_its_fault() -> None:
    right, wrong = FakeKube(), FakeKube()
    path = cluster.driver_path()
    for kube, file in ((right, path), (wrong, path.parent / "mutants" / "fake-gpu-shares-one-device.yaml")):
        install(kube, load_driver_file(file), OWNER, image="i")  # type: ignore[arg-type]  # the fake
        for each in kube.objects.values():
            del each["metadata"]["uid"]
    differing = [key for key in right.objects if right.objects[key] != wrong.objects[key]]
    assert right.objects.keys() == wrong.objects.keys()
    assert [key[0] for key in differing] == ["DaemonSet"]
    assert "share-one-device" in str(wrong.objects[differing[0]])


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: {{ undefined }}}", "undefined"),
        ("kind: [", "is not valid YAML after rendering"),
    ],
)
def test_an_invalid_manifest_is_a_usage_error_and_nothing_is_applied(
    tmp_path: Path, template: str, message: str
) -> None:
    kube: Any = FakeKube()
    with pytest.raises(UsageError, match=message):
        install(kube, _file(tmp_path, "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n" + template), OWNER)
    assert kube.objects == {}


@pytest.mark.parametrize(
    "text", ["metadata: {name: a}", "kind: A\nmetadata: {name: a}", "apiVersion: v1\nkind: A", "[1]"]
)
def test_a_document_that_is_not_an_object_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(TestbedError, match="not a Kubernetes object"):
        install(FakeKube(), _file(tmp_path, text), OWNER)  # type: ignore[arg-type]  # the fake


def test_hardware_that_no_manifest_uses_is_refused_before_applying(tmp_path: Path) -> None:
    kube: Any = FakeKube()
    hardware = cluster.driver_path().parents[1] / "hardware/gpus.yaml"
    driver_file = _file(tmp_path, _TEMPLATE)
    installed = driver_file.model_copy(update={"spec": driver_file.spec.model_copy(update={"install": None})})
    for each in (driver_file, installed):
        with pytest.raises(UsageError, match="driver mine does not use --hardware"):
            install(kube, each, OWNER, hardware=hardware)
    assert kube.objects == {}


@pytest.mark.parametrize("text", ["", "kind: Hardware\n", "apiVersion: v1\nkind: Hardware\n", "- 1\n", "a: [", "\xff"])
def test_a_file_of_another_kind_than_hardware_is_refused_before_applying(tmp_path: Path, text: str) -> None:
    kube: Any = FakeKube()
    (tmp_path / "hardware.yaml").write_text(text, encoding="latin-1")
    with pytest.raises(UsageError, match=r"hardware\.yaml"):
        install(kube, load_driver_file(cluster.driver_path()), OWNER, image="i", hardware=tmp_path / "hardware.yaml")
    assert kube.objects == {}


def test_an_existing_object_of_others_is_not_changed(tmp_path: Path) -> None:
    kube: Any = FakeKube()
    kube.put("ConfigMap", "settings", "mine", data={"theirs": "yes"})
    driver_file = _file(tmp_path, _TEMPLATE)
    with pytest.raises(UsageError, match="ConfigMap settings in namespace mine already exists") as raised:
        install(kube, driver_file, OWNER)
    assert raised.value.exit_code == 2
    assert [key[0] for key in kube.objects] == ["ConfigMap"]
    uninstall(kube, driver_file, OWNER)
    assert kube.objects["ConfigMap", "mine", "settings"]["data"] == {"theirs": "yes"}


_SHARED = """
apiVersion: v1
kind: Namespace
metadata: {name: {{ namespace }}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: {{ namespace }}}
"""


def test_a_namespace_of_others_is_used_and_not_deleted(tmp_path: Path) -> None:
    kube: Any = FakeKube()
    kube.put("Namespace", "mine")
    kube.put("ServiceAccount", "default", "mine")
    driver_file = _file(tmp_path, _SHARED)
    install(kube, driver_file, OWNER)
    install(kube, driver_file, OWNER)
    uninstall(kube, driver_file, OWNER)
    assert kube.deleted == []


def test_changes_of_shared_objects_are_undone(tmp_path: Path) -> None:
    bare: list[Any] = []
    kube: Any = FakeKube()
    kube.put("Namespace", "mine", apiVersion="v1", metadata={"uid": "7", "managedFields": [{"manager": OWNER.manager}]})
    kube.put("ServiceAccount", "default", "mine", metadata={"managedFields": [{"manager": "other"}]})
    kube.refuse = bare.append
    uninstall(kube, _file(tmp_path, _SHARED), OWNER)
    (applied,) = bare
    assert applied["metadata"] == {"name": "mine", "namespace": "default", "uid": "7"}, "no label, no annotation"
    assert kube.applied[0][2] == {"manager": OWNER.manager, "force": False}
    assert kube.deleted == []


@pytest.mark.parametrize("status", [404, 409])
def test_a_deleted_shared_object_is_not_created_again(tmp_path: Path, status: int) -> None:
    kube: Any = FakeKube()
    kube.put("Namespace", "mine", apiVersion="v1", metadata={"uid": "7", "managedFields": [{"manager": OWNER.manager}]})

    def refuse(_: Any) -> None:
        raise ApiError("PATCH", status, "", "gone")

    kube.refuse = refuse
    uninstall(kube, _file(tmp_path, _SHARED), OWNER)
    assert kube.deleted == []


def test_installing_is_idempotent(tmp_path: Path) -> None:
    kube: Any = FakeKube()
    driver_file = _file(tmp_path, _TEMPLATE)
    install(kube, driver_file, OWNER)
    install(kube, driver_file, OWNER)
    assert all(OWNER.owns(each) for each in kube.objects.values())
    uninstall(kube, driver_file, OWNER)
    assert kube.objects == {}


def test_an_object_of_a_kind_that_an_earlier_manifest_defines_is_applied(tmp_path: Path) -> None:
    class Unknowing(FakeKube):
        def find(self, api_version: str, kind: str, *names: Any) -> Any:
            if kind == "Widget":
                raise UsageError("the API server has no Widget in v1")
            return super().find(api_version, kind, *names)

    kube: Any = Unknowing()
    kube.put("Namespace", "mine")
    install(kube, _file(tmp_path, "apiVersion: v1\nkind: Widget\nmetadata: {name: w}\n"), OWNER)
    assert [key[0] for key in kube.objects] == ["Namespace", "Widget"]


OTHER = Owner("mine", "ba9876543210", "there", pid=8)


@pytest.mark.parametrize("kind", ["ConfigMap", "Namespace"])
def test_an_object_of_another_testbed_is_refused_with_its_owner(tmp_path: Path, kind: str) -> None:
    kube: Any = FakeKube()
    name, home = ("settings", "mine") if kind == "ConfigMap" else ("mine", "default")
    kube.apply(OTHER.mark({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": home}}))
    with pytest.raises(UsageError, match=r"it belongs to testbed mine of host there \(process 8\)"):
        install(kube, _file(tmp_path, _TEMPLATE), OWNER)
    assert len(kube.objects) == 1
    uninstall(kube, _file(tmp_path, _TEMPLATE), OWNER)
    assert len(kube.objects) == 1


def test_an_object_that_another_testbed_just_created_is_not_overwritten(tmp_path: Path) -> None:
    class Raced(FakeKube):
        def apply(self, manifest: Any, **how: Any) -> Any:
            if manifest["kind"] == "ConfigMap":
                super().apply(OTHER.mark(manifest))
                assert (how["force"], how["manager"]) == (False, OWNER.manager)
                raise ApiError("PATCH", 409, "Conflict", "Apply failed with 1 conflict")
            return super().apply(manifest, **how)

    kube: Any = Raced()
    with pytest.raises(UsageError, match="it belongs to testbed mine of host there"):
        install(kube, _file(tmp_path, _TEMPLATE), OWNER)
