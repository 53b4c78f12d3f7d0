"""What a testbed made in somebody's cluster goes, in an order in which a driver can finish, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed.bringup import removal
from testbed.bringup.created_kinds import Making
from testbed.errors import TestbedError, WaitTimeout
from testbed.kube.client import Object, Resource
from testbed.kube.discovery import Found
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
    """A driver, and a test that was killed in the middle: one of its pods was made by a controller and has no label of ours."""
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


def test_tests_end_while_their_driver_is_there_and_namespaces_go_last() -> None:
    kube: Any = FakeKube()
    kube.put("ConfigMap", "theirs")
    removed = removal.remove(kube, _everything(kube))
    deleted = kube.deleted
    assert deleted[:2] == ["DaemonSet/test", "Pod/of-a-daemonset"]
    order = ["Pod/pod", "ResourceClaim/claim", "DaemonSet/driver", "ClusterRole/driver", "Namespace/driver"]
    assert [each for each in deleted if each in order] == order
    assert list(kube.objects) == [("ConfigMap", "default", "theirs")]
    assert "DaemonSet driver in namespace driver" in removed


def test_slices_of_a_driver_that_was_installed_go_with_it_and_those_of_others_stay() -> None:
    kube: Any = FakeKube()
    manifest = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "n"}, "spec": {}}
    daemonset = kube.apply(MINE.mark_driver(manifest, "gpu.example"))
    for driver in ("gpu.example", "nic.example"):
        kube.put("ResourceSlice", f"of-{driver}", spec={"driver": driver})

    removal.remove(kube, [daemonset])

    assert [name for kind, _, name in kube.objects if kind == "ResourceSlice"] == ["of-nic.example"]


def test_pods_that_do_not_end_keep_their_driver_and_are_no_verdict_on_it() -> None:
    kube: Any = FakeKube()
    objects = _everything(kube)
    kube.finalizers["pod"] = 1
    with pytest.raises(TestbedError, match=r"dra-x-1 does not end, so the driver is left") as stuck:
        removal.remove(kube, objects)
    assert stuck.value.exit_code == 3
    assert ("DaemonSet", "driver", "driver") in kube.objects


def test_what_does_not_end_is_said() -> None:
    kube: Any = FakeKube()
    namespace = _made(kube, "Namespace", "driver")
    kube.finalizers["driver"] = 1
    with pytest.raises(WaitTimeout, match="still there: Namespace driver"):
        removal.remove(kube, [namespace])


def test_an_object_that_came_anew_under_the_same_name_is_somebody_elses() -> None:
    kube: Any = FakeKube()
    old = {**_made(kube, "ConfigMap", "c"), "metadata": {"name": "c", "namespace": "default", "uid": "old"}}
    kube.finalizers["c"] = 1
    kube.objects["ConfigMap", "default", "c"]["metadata"]["uid"] = "new"
    assert removal.remove(kube, [old]) == ["ConfigMap c in namespace default"]


MAKING = Making(
    frozenset({("", "pods"), ("apps", "daemonsets")}), frozenset({("rbac.authorization.k8s.io", "ClusterRole")})
)
ROLES = Resource("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", namespaced=False)


def _clear(kube: FakeKube, monkeypatch: pytest.MonkeyPatch, found: Found, making: Making = MAKING) -> list[str]:
    monkeypatch.setattr(removal, "labelled", lambda *_: found)
    return removal.clear(kube, MINE, making, Progress())  # type: ignore[arg-type]  # the fake


@pytest.mark.parametrize(
    ("refused", "silent", "said"),
    [
        ((Resource("v1", "pods", "Pod", namespaced=True),), (), "may not list pods"),
        ((ROLES,), (), "may not list clusterroles"),
        ((), ("apps/v1",), "no answer of apps/v1"),
        ((), ("rbac.authorization.k8s.io/v1",), "no answer of rbac"),
    ],
)
def test_what_may_be_ours_and_cannot_be_seen_keeps_all_of_it(
    refused: tuple[Resource, ...], silent: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube: Any = FakeKube()
    found = Found((_made(kube, "ConfigMap", "c"),), refused, silent)
    with pytest.raises(TestbedError, match=f"nothing was removed: {said}"):
        _clear(kube, monkeypatch, found)
    assert kube.deleted == []


def test_what_cannot_be_ours_is_said_and_no_obstacle(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kube: Any = FakeKube()
    secrets = Resource("v1", "secrets", "Secret", namespaced=True)
    found = Found((_made(kube, "ConfigMap", "c"),), (secrets,), ("metrics.k8s.io/v1beta1",))
    assert _clear(kube, monkeypatch, found) == ["ConfigMap c in namespace default"]
    said = " ".join(capsys.readouterr().err.split())
    assert "not looked at, but the testbed makes none of them: secrets, metrics.k8s.io/v1beta1" in said
    with pytest.raises(TestbedError, match="secrets"):
        _clear(kube, monkeypatch, found, Making(frozenset(), None))


def test_what_was_added_to_objects_of_others_is_taken_back_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    kube: Any = FakeKube()
    for name, manager in (("ours-in-it", MINE.manager), ("anothers", "dra-testbed/bbbb"), ("theirs", "kubectl")):
        kube.put("Namespace", name, metadata={"uid": f"of-{name}", "managedFields": [{"manager": manager}]})
    _clear(kube, monkeypatch, Found(()))
    assert kube.applied == [("Namespace", "ours-in-it", {"manager": MINE.manager, "force": False})]
    assert kube.deleted == []
