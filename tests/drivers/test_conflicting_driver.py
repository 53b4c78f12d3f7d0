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


def test_an_empty_cluster_takes_any_driver() -> None:
    kube: Any = FakeKube()
    refuse_conflicting_driver(kube, DRIVER)


@pytest.mark.parametrize(
    ("kind", "facts", "said"),
    [
        ("DeviceClass", {"name": DRIVER.device_class}, "DeviceClass gpu.dra-testbed.example is there"),
        (
            "Pod",
            {"name": "p", "namespace": DRIVER.pods.namespace, "metadata": {"labels": {"app": "fake-gpu-driver"}}},
            "pods dra-testbed-driver/p are there",
        ),
        ("ResourceSlice", {"name": "s", "spec": cluster.slice_spec("node-1", 1)}, "has ResourceSlices for node-1"),
    ],
)
def test_each_trace_of_somebody_elses_driver_is_enough(kind: str, facts: dict[str, Any], said: str) -> None:
    kube: Any = FakeKube()
    kube.put(kind, **facts)
    with pytest.raises(UsageError, match=said) as refused:
        refuse_conflicting_driver(kube, DRIVER)
    assert "without spec.install" in refused.value.hint


def test_a_driver_of_another_testbed_is_said_to_be_its() -> None:
    kube: Any = FakeKube()
    kube.apply(THEIRS.mark({"apiVersion": "v1", "kind": "DeviceClass", "metadata": {"name": DRIVER.device_class}}))
    with pytest.raises(UsageError, match=r"belongs to testbed theirs of host box \(process 7\)"):
        refuse_conflicting_driver(kube, DRIVER)


def test_a_driver_that_is_only_judged_may_be_there() -> None:
    kube: Any = FakeKube()
    kube.put("DeviceClass", DRIVER.device_class)
    in_place = DRIVER.model_copy(update={"spec": DRIVER.spec.model_copy(update={"install": None})})
    refuse_conflicting_driver(kube, in_place)
