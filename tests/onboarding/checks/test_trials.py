"""First devices are tried on each node, and removed again; a pod that does not run says whose fault it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed.onboarding.checks import trials
from testbed.onboarding.checks.all_checks import world_on
from testbed.onboarding.checks.trials import Cause, FailedTrial, Trial, try_devices
from testbed.vocabulary.world import World
from testbed.waiting import set_patience
from tests.fakes import cluster
from tests.fakes.cluster import NODES, FakeTestbed


@pytest.fixture(autouse=True)
def _impatient() -> Iterator[None]:
    set_patience(0.01)
    yield
    set_patience(1.0)


def _try(made: FakeTestbed) -> list[Trial | FailedTrial]:
    return try_devices(world_on(made, made.driver_file))  # type: ignore[arg-type]


def test_the_probe_is_compared_on_each_node_and_everything_is_removed() -> None:
    made = cluster.make()
    found = [each for each in _try(made) if isinstance(each, Trial) and each.probe is made.driver_file.probe]
    assert [each.node for each in found] == list(NODES)
    assert all(each.with_claim.ids and not each.without.ids for each in found)
    assert found[0].additions == ("environment variable GPU_DEVICE_GPU_UUID",)
    assert not [key for key in made.kube.objects if key[0] in ("Pod", "ResourceClaim", "ResourceClaimTemplate")]


@pytest.mark.parametrize(
    ("fault", "cause", "why"),
    [
        ("no-pods-start", Cause.DRIVER, "the driver is not registered with the kubelet"),
        ("image-missing", Cause.ENVIRONMENT, "the image is not on the node"),
        ("node-away", Cause.ENVIRONMENT, "is not Ready"),
    ],
)
def test_a_pod_that_does_not_run_says_whose_fault_it_is(fault: str, cause: Cause, why: str) -> None:
    made = cluster.make(fault)
    made.kube.finalizers.clear()
    found = [each for each in _forced(made) if isinstance(each, FailedTrial)]
    assert {each.cause for each in found} == {cause}
    assert why in found[0].why


def _forced(made: FakeTestbed) -> list[Trial | FailedTrial]:
    """Try devices on nodes whose kubelets never confirm the deletion of a pod."""
    react = made.kube.react

    def without_finalizers(kube: Any) -> None:
        react(kube)
        kube.finalizers.clear()

    made.kube.react = without_finalizers
    return _try(made)


def _prepare_failed(pod: str, message: str, count: int) -> Any:
    about = {"kind": "Pod", "name": pod}
    return {"reason": "FailedPrepareDynamicResources", "message": message, "count": count, "involvedObject": about}


def test_a_driver_is_believed_when_it_has_refused_twice() -> None:
    refusal = "Failed to prepare dynamic resources: NodePrepareResources failed for ResourceClaim c: no such device"
    events = [_prepare_failed("with-0", refusal, 2), _prepare_failed("with-1", refusal, 1)]
    assert trials._refused(events) == {"with-0"}


def test_a_device_that_left_its_slice_is_still_known() -> None:
    made: Any = cluster.make()
    world = World(made.owner, made.kube, made.driver_file, cluster.driver_path().parent, "image")
    before = trials._published(world, "node-1", world.driver_file.probe)
    assert before == {f"node-1-uuid-{index}" for index in range(4)}
    made.kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]["devices"].pop()
    assert trials._published(world, "node-1", world.driver_file.probe) == before
