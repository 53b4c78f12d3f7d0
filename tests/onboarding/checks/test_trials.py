"""What the first device of a node is compared with: the driver may remove it from its slices while the pod of the trial uses it."""

from __future__ import annotations

from typing import Any

from testbed.onboarding.checks import trials
from testbed.vocabulary.world import World
from tests.fakes import cluster


def test_a_device_that_left_its_slice_is_still_known() -> None:
    made: Any = cluster.make()
    world = World(made.owner, made.kube, made.driver_file, cluster.driver_path().parent, "image")
    before = trials._published(world, "node-1", world.driver_file.probe)
    assert before == {f"node-1-uuid-{index}" for index in range(4)}
    made.kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]["devices"].pop()
    assert trials._published(world, "node-1", world.driver_file.probe) == before
