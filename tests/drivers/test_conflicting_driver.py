from __future__ import annotations

from typing import Any

import pytest

from testbed.drivers import refuse_conflicting_driver
from testbed.errors import UsageError
from testbed.kube.ownership import Owner
from testbed.models.driver_file import load_driver_file
from tests.fakes import cluster
from tests.fakes.kube import FakeKube

DRIVER = load_driver_file(cluster.driver_path())
THEIRS = Owner("theirs", "bbbbbbbbbbbb", "box", pid=7)


def test_an_empty_cluster_accepts_any_driver() -> None:
    kube: Any = FakeKube()
    refuse_conflicting_driver(kube, DRIVER)


@pytest.mark.parametrize(
    ("kind", "facts", "message"),
    [
        ("DeviceClass", {"name": DRIVER.device_class}, "DeviceClass gpu.dra-testbed.example exists"),
        (
            "Pod",
            {"name": "p", "namespace": DRIVER.pods.namespace, "metadata": {"labels": {"app": "fake-gpu-driver"}}},
            "its pods dra-testbed-driver/p exist",
        ),
        ("ResourceSlice", {"name": "s", "spec": cluster.slice_spec("node-1", 1)}, "has ResourceSlices for node-1"),
    ],
)
def test_any_object_of_an_existing_driver_is_a_conflict(kind: str, facts: dict[str, Any], message: str) -> None:
    kube: Any = FakeKube()
    kube.put(kind, **facts)
    with pytest.raises(UsageError, match=message) as refused:
        refuse_conflicting_driver(kube, DRIVER)
    assert "without spec.install" in refused.value.hint


def test_the_owner_of_another_testbeds_driver_is_named() -> None:
    kube: Any = FakeKube()
    kube.apply(THEIRS.mark({"apiVersion": "v1", "kind": "DeviceClass", "metadata": {"name": DRIVER.device_class}}))
    with pytest.raises(UsageError, match=r"it belongs to testbed theirs of host box \(process 7\)"):
        refuse_conflicting_driver(kube, DRIVER)


def test_a_driver_that_is_not_installed_may_exist() -> None:
    kube: Any = FakeKube()
    kube.put("DeviceClass", DRIVER.device_class)
    installed = DRIVER.model_copy(update={"spec": DRIVER.spec.model_copy(update={"install": None})})
    refuse_conflicting_driver(kube, installed)
