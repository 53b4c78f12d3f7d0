"""What a testbed created in an existing cluster is removed in an order in which drivers can unprepare, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.bringup import removal
from testbed.bringup.created_kinds import CreatedKinds
from testbed.drivers.changed_daemonsets import UNDO
from testbed.errors import TestbedError, WaitTimeout
from testbed.kube.client import Object, Resource
from testbed.kube.discovery import LabelledObjects
from testbed.kube.ownership import REQUIREMENT, Owner
from testbed.progress import Progress
from testbed.waiting import set_patience
from tests.fakes.kube import FakeKube

MINE = Owner("mine", "aaaaaaaaaaaa")


@pytest.fixture(autouse=True)
def _impatient() -> Iterator[None]:
    set_patience(0.001)
    yield
    set_patience(1.0)


def _made(kube: FakeKube, kind: str, name: str, namespace: str = "default", **labels: str) -> Object:
    manifest = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": {}}
    return kube.apply(MINE.mark(manifest, **labels))


def _everything(kube: FakeKube) -> list[Object]:
    """Create a driver and a test that was killed half-way. A controller created one of its pods, which lacks our labels."""
    kube.put("Pod", "of-a-daemonset", "dra-x-1")
    test = {REQUIREMENT: "X-001"}
    return [
        _made(kube, "Namespace", "driver"),
        _made(kube, "ClusterRole", "driver"),
        _made(kube, "DaemonSet", "driver", "driver"),
        _made(kube, "Namespace", "dra-x-1", **test),
        _made(kube, "ResourceClaim", "claim", "dra-x-1", **test),
        _made(kube, "DaemonSet", "test", "dra-x-1", **test),
        _made(kube, "Pod", "pod", "dra-x-1", **test),
    ]


def _remove(kube: Any, objects: list[Object], *drivers: str) -> list[str]:
    return removal.remove(kube, objects, drivers, Progress())


def test_tests_are_cleaned_up_while_the_driver_runs_and_namespaces_are_deleted_last() -> None:
    kube: Any = FakeKube()
    kube.put("ConfigMap", "theirs")
    removed = _remove(kube, _everything(kube))
    deleted = kube.deleted
    assert deleted[:2] == ["DaemonSet/test", "Pod/of-a-daemonset"]
    order = ["Pod/pod", "ResourceClaim/claim", "DaemonSet/driver", "ClusterRole/driver", "Namespace/driver"]
    assert [each for each in deleted if each in order] == order
    assert list(kube.objects) == [("ConfigMap", "default", "theirs")]
    assert "DaemonSet driver in namespace driver" in removed


def test_the_slices_of_a_removed_driver_are_deleted_and_those_of_other_drivers_stay() -> None:
    kube: Any = FakeKube()
    manifest = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "n"}, "spec": {}}
    daemonset = kube.apply(MINE.mark_driver(manifest, "gpu.example"))
    _publish(kube, "gpu.example", "nic.example")

    _remove(kube, [daemonset], "gpu.example")

    assert _slices(kube) == ["of-nic.example"]


def _publish(kube: FakeKube, *drivers: str) -> None:
    for driver in drivers:
        kube.put("ResourceSlice", f"of-{driver}", spec={"driver": driver})


def _slices(kube: FakeKube) -> list[str]:
    return [name for kind, _, name in kube.objects if kind == "ResourceSlice"]


@pytest.mark.parametrize("drivers", [(), ("gpu.example",)])
def test_a_labelled_object_of_a_tenant_does_not_delete_the_slices_of_a_production_driver(
    drivers: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    kube: Any = FakeKube()
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "tenant"}}
    attack = kube.apply(MINE.mark_driver(manifest, "production.example"))
    _publish(kube, "production.example")

    _remove(kube, [attack], *drivers)

    assert _slices(kube) == ["of-production.example"]
    assert "no ResourceSlice of driver 'production.example' is deleted" in " ".join(capsys.readouterr().err.split())


def test_slices_of_other_drivers_stay_if_the_server_ignores_the_field_selector(monkeypatch: pytest.MonkeyPatch) -> None:
    kube: Any = FakeKube()
    manifest = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "n"}, "spec": {}}
    daemonset = kube.apply(MINE.mark_driver(manifest, "gpu.example"))
    _publish(kube, "gpu.example", "nic.example")
    listed = kube.list
    monkeypatch.setattr(kube, "list", lambda version, kind, namespace=None, **_: listed(version, kind, namespace))

    _remove(kube, [daemonset], "gpu.example")

    assert _slices(kube) == ["of-nic.example"]


def test_the_driver_stays_while_pods_of_tests_do_not_terminate_and_is_not_blamed() -> None:
    kube: Any = FakeKube()
    objects = _everything(kube)
    kube.finalizers["pod"] = 1
    with pytest.raises(TestbedError, match=r"dra-x-1 are not deleted, so the driver was not removed") as stuck:
        _remove(kube, objects)
    assert stuck.value.exit_code == 3
    assert ("DaemonSet", "driver", "driver") in kube.objects


def test_an_object_that_is_not_deleted_is_named() -> None:
    kube: Any = FakeKube()
    namespace = _made(kube, "Namespace", "driver")
    kube.finalizers["driver"] = 1
    with pytest.raises(WaitTimeout, match="not deleted yet: Namespace driver"):
        _remove(kube, [namespace])


def test_an_object_that_was_created_again_under_the_same_name_is_not_waited_for() -> None:
    kube: Any = FakeKube()
    old = {**_made(kube, "ConfigMap", "c"), "metadata": {"name": "c", "namespace": "default", "uid": "old"}}
    kube.finalizers["c"] = 1
    kube.objects["ConfigMap", "default", "c"]["metadata"]["uid"] = "new"
    assert _remove(kube, [old]) == ["ConfigMap c in namespace default"]


KINDS = CreatedKinds(
    frozenset({("", "pods"), ("apps", "daemonsets")}), frozenset({("rbac.authorization.k8s.io", "ClusterRole")})
)
ROLES = Resource("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", namespaced=False)


def _remove_all(
    kube: FakeKube, monkeypatch: pytest.MonkeyPatch, found: LabelledObjects, kinds: CreatedKinds = KINDS
) -> list[str]:
    monkeypatch.setattr(removal, "find_labelled", lambda *_: found)
    return removal.remove_all(kube, MINE, kinds, (), Progress())  # type: ignore[arg-type]  # the fake


@pytest.mark.parametrize(
    ("refused", "silent", "said"),
    [
        ((Resource("v1", "pods", "Pod", namespaced=True),), (), "this user may not list pods"),
        ((ROLES,), (), "this user may not list clusterroles"),
        ((), ("apps/v1",), "API group apps/v1 does not answer"),
        ((), ("rbac.authorization.k8s.io/v1",), "API group rbac"),
    ],
)
def test_nothing_is_removed_if_kinds_that_the_testbed_may_have_created_cannot_be_listed(
    refused: tuple[Resource, ...], silent: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube: Any = FakeKube()
    found = LabelledObjects((_made(kube, "ConfigMap", "c"),), refused, silent)
    with pytest.raises(TestbedError, match=f"nothing was removed: {said}"):
        _remove_all(kube, monkeypatch, found)
    assert kube.deleted == []


def test_kinds_that_the_testbed_never_creates_need_not_be_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kube: Any = FakeKube()
    secrets = Resource("v1", "secrets", "Secret", namespaced=True)
    found = LabelledObjects((_made(kube, "ConfigMap", "c"),), (secrets,), ("metrics.k8s.io/v1beta1",))
    assert _remove_all(kube, monkeypatch, found) == ["ConfigMap c in namespace default"]
    said = " ".join(capsys.readouterr().err.split())
    assert "not listed, but the testbed creates none of them: secrets, metrics.k8s.io/v1beta1" in said
    with pytest.raises(TestbedError, match="secrets"):
        _remove_all(kube, monkeypatch, found, CreatedKinds(frozenset(), None))


def test_a_driver_that_a_killed_test_stopped_runs_again_before_pods_are_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kube: Any = FakeKube()
    objects = tuple(_everything(kube))
    undo = json.dumps({"testbed": MINE.identity, "spec": {"template": {"spec": {"affinity": None}}}})
    spec: Object = {"template": {"spec": {"affinity": {"nodeAffinity": {}}}}}
    kube.put("DaemonSet", "theirs", "theirs", metadata={"annotations": {UNDO: undo}}, spec=spec)
    deleted_before: list[str] = []

    def patch(target: Object, change: Object) -> None:
        deleted_before.extend([*kube.deleted, f"then {target['metadata']['name']}"])
        FakeKube.patch(kube, target, change)

    monkeypatch.setattr(kube, "patch", patch)
    _remove_all(kube, monkeypatch, LabelledObjects(objects))
    assert deleted_before == ["then theirs"]
    assert kube.objects["DaemonSet", "theirs", "theirs"]["spec"] == {"template": {"spec": {}}}


def test_changes_to_objects_that_the_testbed_did_not_create_are_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    kube: Any = FakeKube()
    for name, manager in (("ours-in-it", MINE.manager), ("anothers", "dra-testbed/bbbb"), ("theirs", "kubectl")):
        kube.put("Namespace", name, metadata={"uid": f"of-{name}", "managedFields": [{"manager": manager}]})
    _remove_all(kube, monkeypatch, LabelledObjects(()))
    assert kube.applied == [("Namespace", "ours-in-it", {"manager": MINE.manager, "force": False})]
    assert kube.deleted == []
