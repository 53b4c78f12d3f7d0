from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from testbed.drivers.published.pool_transitions import slices_over_time
from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed, WaitTimeout
from testbed.vocabulary.driver.driver import Driver
from testbed.vocabulary.driver.pool_changes import PoolChange, PoolWatch
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World
from tests.fakes import cluster

Make = Callable[..., World]


def _event(kind: str, count: int, uid: str | int = "", **pool: int) -> dict[str, Any]:
    metadata = {"name": "slice-node-1", "resourceVersion": f"{count} {pool}", **({"uid": uid} if uid else {})}
    return {"type": kind, "object": {"metadata": metadata, "spec": cluster.slice_spec("node-1", count, **pool)}}


def _modified(count: int, **pool: int) -> dict[str, Any]:
    return _event("MODIFIED", count, **pool)


def _watched(seen: PoolWatch, monkeypatch: pytest.MonkeyPatch, *events: dict[str, Any]) -> PoolWatch:
    """Let the slices change by these events while the pools are watched."""

    def watch(*_: Any, **asked: Any) -> Iterator[Any]:
        assert asked["resourceVersion"] == "1"
        yield from events

    *_, last = slices_over_time(seen.before, events)
    monkeypatch.setattr(seen.world.kube, "watch", watch)
    monkeypatch.setattr(type(seen.world), "slices", lambda _world: list(last))
    return seen


@pytest.mark.parametrize(
    ("events", "lost"),
    [
        ([], []),
        ([_modified(4)], []),
        ([_modified(5)], []),
        ([_modified(3), _modified(4)], ["gpu-3"]),
        ([_modified(0), _modified(4)], ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]),
        ([_modified(0, resourceSliceCount=2), _modified(4)], []),  # the pool is never complete
        ([_event("DELETED", 4)], ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]),  # the pool is gone for good
        ([_event("DELETED", 4), _event("ADDED", 4)], ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]),
    ],
)
def test_devices_that_were_missing_for_a_moment_are_lost(
    world: Make, monkeypatch: pytest.MonkeyPatch, events: list[Any], lost: list[str]
) -> None:
    seen = _watched(Driver(world()).watch_pools("node-1"), monkeypatch, *events)
    assert seen.pools == ("node-1",)
    assert seen.lost_devices == tuple(Device(cluster.DRIVER, "node-1", name) for name in lost)


def test_devices_that_claims_use_may_leave_their_slices(world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    here = world()
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        (device,) = scenario.pod("first").should_run().devices
        seen = _watched(Driver(here).watch_pools("node-1"), monkeypatch, _modified(0), _modified(4))
        assert seen.lost_devices_in_use == (device,)
        assert [each.name for each in seen.lost_devices] == ["gpu-1", "gpu-2", "gpu-3"]


def test_a_watch_that_does_not_show_the_current_slices_proves_nothing(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = _watched(Driver(world()).watch_pools("node-1"), monkeypatch, _modified(3), _modified(4))
    monkeypatch.setattr(seen.world.kube, "watch", lambda *_, **_asked: iter(()))
    with pytest.raises(WaitTimeout, match="the watch of ResourceSlices to show the current ones"):
        _ = seen.lost_devices


def _with_uids(made: World) -> World:
    for each in made.slices():
        each["metadata"]["uid"] = f"{each['metadata']['name']}-uid"
        made.kube.apply(each)
    return made


@pytest.mark.parametrize(
    ("events", "replaced"),
    [
        ([], ()),
        ([_event("MODIFIED", 4, "slice-node-1-uid")], ()),
        ([_event("DELETED", 4)], ("slice-node-1",)),
        ([_event("DELETED", 4), _event("ADDED", 4, "another")], ("slice-node-1",)),
    ],
)
def test_slices_with_another_uid_are_replaced(
    world: Make, monkeypatch: pytest.MonkeyPatch, events: list[Any], replaced: tuple[str, ...]
) -> None:
    made = _with_uids(world())
    assert _watched(Driver(made).watch_pools("node-1"), monkeypatch, *events).replaced_slices == replaced


@pytest.mark.parametrize(
    ("seconds", "cause"), [(4.24, r"ready again after 4\.2 s\n.*the driver deleted"), (41, r"41\.0 s\n.*a slow stop")]
)
def test_lost_slices_differ_from_a_slow_start(
    world: Make, monkeypatch: pytest.MonkeyPatch, seconds: float, cause: str
) -> None:
    less, all_again = (_event("MODIFIED", count, "slice-node-1-uid") for count in (3, 4))
    driver = Driver(_with_uids(world()))
    _watched(driver.watch_pools("node-1"), monkeypatch, all_again).should_stay_published(seconds)
    seen = _watched(driver.watch_pools("node-1"), monkeypatch, less, all_again)
    with pytest.raises(DriverFailed, match=rf"missing for a time: {cluster.DRIVER}/node-1/gpu-3; .*{cause}"):
        seen.should_stay_published(seconds)


def test_the_pools_of_the_network_are_watched_on_every_node(world: Make) -> None:
    made = world()
    for each in made.slices():
        del each["spec"]["nodeName"]
        made.kube.put("ResourceSlice", each["metadata"]["name"], spec=each["spec"])  # type: ignore[attr-defined]  # the fake
    assert Driver(made).watch_pools("any-node").pools == ("node-1", "node-2")


@pytest.mark.parametrize("fault", ["count-one-slice-too-many", "slices-missing"])
def test_a_watch_of_no_complete_pool_would_prove_nothing(world: Make, fault: str) -> None:
    with pytest.raises(DriverFailed, match="the driver publishes no complete pool with devices for node node-1"):
        Driver(world(fault)).watch_pools("node-1")


def test_a_change_that_no_complete_pool_shows_is_not_judged(world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _watched(Driver(world()).watch_pools("node-1"), monkeypatch, _modified(3, resourceSliceCount=2))
    with pytest.raises(DriverFailed, match="pool node-1 was never complete with other devices"):
        _ = PoolChange("node-1", seen).intermediate_states
