"""Facts are read from the API of a cluster, and a driver that publishes nothing is described."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed.errors import ApiError, DriverFailed, TestbedError
from testbed.onboarding.discovery.gathering import gather, wait_for_devices
from testbed.waiting import set_patience
from tests.fakes.kube import FakeKube
from tests.onboarding.discovery.shapes import GPU, daemonset

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


class Cluster(FakeKube):
    """A cluster that answers reviews of permissions: the account `plugin` may publish."""

    may_review = True

    def request(self, method: str, path: str, **how: Any) -> Any:
        if not path.endswith("/subjectaccessreviews"):
            return super().request(method, path, **how)
        if not self.may_review:
            raise ApiError(f"{method} {path}", 403, "Forbidden", "not you")
        return {"status": {"allowed": how["body"]["spec"]["user"].endswith(":plugin")}}


@pytest.fixture
def kube() -> Iterator[Cluster]:
    """Return a cluster with two DaemonSets, one pod of the first, and one slice."""
    set_patience(0.01)
    made = Cluster()
    for name, account in (("acme", "plugin"), ("monitor", "default")):
        found = daemonset(name, serviceAccountName=account).daemonset
        made.put("DaemonSet", name, "acme-system", spec=found["spec"], metadata={"uid": name})
    owner = {"ownerReferences": [{"uid": "acme"}]}
    spec = {"nodeName": "node-1", "containers": [{"name": "plugin"}]}
    made.put("Pod", "acme-1", "acme-system", spec=spec, status=READY, metadata=owner)
    made.put("Node", "node-1")
    pool = {"name": "node-1", "generation": 2, "resourceSliceCount": 1}
    slices = {"driver": GPU, "nodeName": "node-1", "pool": pool, "devices": [{"name": "gpu-0"}]}
    made.put("ResourceSlice", "slice-1", spec=slices, metadata={"resourceVersion": "1"})
    yield made
    set_patience(1)


def test_facts_are_devices_with_nodes_and_daemonsets_with_pods(kube: Cluster) -> None:
    found = gather(kube)  # type: ignore[arg-type]
    assert [(each.driver, each.pool, each.node, each.name) for each in found.devices] == [
        (GPU, "node-1", "node-1", "gpu-0")
    ]
    assert [(each.name, len(each.pods), each.writes_slices) for each in found.daemonsets] == [
        ("acme", 1, True),
        ("monitor", 0, False),
    ]
    assert found.drivers == (GPU,)


def test_without_the_permission_to_review_any_daemonset_may_publish(kube: Cluster) -> None:
    kube.may_review = False
    assert all(each.writes_slices for each in gather(kube).daemonsets)  # type: ignore[arg-type]


def test_a_driver_that_publishes_nothing_is_shown_with_its_log(kube: Cluster) -> None:
    del kube.objects["ResourceSlice", "default", "slice-1"]
    kube.log_texts["acme-1/plugin"] = "no hardware found\n"
    with pytest.raises(
        DriverFailed, match=r"published a ResourceSlice(?s:.*)pod acme-1 is Ready(?s:.*)no hardware found"
    ):
        wait_for_devices(kube, {"acme-system"})  # type: ignore[arg-type]


def test_a_pod_that_does_not_become_ready_is_shown_with_its_reason(kube: Cluster) -> None:
    del kube.objects["ResourceSlice", "default", "slice-1"]
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such host"}}
    kube.objects["Pod", "acme-system", "acme-1"]["status"] = {
        "phase": "Pending",
        "containerStatuses": [{"name": "plugin", "state": waiting}],
    }
    with pytest.raises(TestbedError, match=r"ErrImagePull no such host(?s:.*)dra-testbed images program") as failed:
        wait_for_devices(kube, {"acme-system"})  # type: ignore[arg-type]
    assert not isinstance(failed.value, DriverFailed)


def test_devices_that_some_pods_have_are_enough(kube: Cluster) -> None:
    """A pod of a node without hardware may never become Ready."""
    kube.objects["Pod", "acme-system", "acme-1"]["status"] = {"phase": "Pending"}
    wait_for_devices(kube, {"acme-system"})  # type: ignore[arg-type]
