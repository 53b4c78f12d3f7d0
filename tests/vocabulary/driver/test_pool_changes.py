from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from testbed.drivers.published.slices import Device
from testbed.vocabulary.driver.driver import Driver
from testbed.vocabulary.world import World
from tests.fakes import cluster

Make = Callable[..., World]


def _modified(count: int, **pool: int) -> dict[str, Any]:
    there = {"metadata": {"name": "slice-node-1"}, "spec": cluster.slice_spec("node-1", count, **pool)}
    return {"type": "MODIFIED", "object": there}


@pytest.mark.parametrize(
    ("events", "lost"),
    [
        ([], []),
        ([_modified(4)], []),
        ([_modified(5)], []),
        ([_modified(3), _modified(4)], ["gpu-3"]),
        ([_modified(0), _modified(4)], ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]),
        ([_modified(0, resourceSliceCount=2), _modified(4)], []),  # the pool is never complete
    ],
)
def test_devices_that_were_missing_for_a_moment_are_lost(
    world: Make, monkeypatch: pytest.MonkeyPatch, events: list[Any], lost: list[str]
) -> None:
    made = world()
    seen = Driver(made).watch_pools("node-1")

    def watch(*_: Any, **asked: Any) -> Iterator[Any]:
        assert asked["resourceVersion"] == "1"
        yield from events

    monkeypatch.setattr(made.kube, "watch", watch)
    assert seen.pools == ("node-1",)
    assert seen.lost_devices == tuple(Device(cluster.DRIVER, "node-1", name) for name in lost)


def test_a_pool_that_was_never_complete_has_no_lost_devices(world: Make) -> None:
    assert Driver(world("count-one-slice-too-many")).watch_pools("node-1").lost_devices == ()
