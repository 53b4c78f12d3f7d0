from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_driver.devices.model import Device, Pool, Taint
from fake_driver.publishing.planner import comparable, plan, state_key
from fake_driver.publishing.slices import Layout, Owner, for_network, for_node
from fake_driver.publishing.validation import find_problems

NODE = Owner("worker", "node-uid")
DRIVER = "gpu.example"
Object = dict[str, Any]


def gpus(count: int, model: str = "a") -> tuple[Device, ...]:
    return tuple(Device(f"gpu-{index}", "gpu", {"model": model}, {"memory": "80Gi"}) for index in range(count))


def wanted(count: int, model: str = "a") -> list[Object]:
    return for_node(DRIVER, NODE, gpus(count, model))


class Server:
    """Executes the writes of a plan one by one, and keeps each state that a scheduler could have seen."""

    def __init__(self) -> None:
        self.stored: dict[str, Object] = {}
        self.states: list[list[Object]] = []
        self.writes = 0

    def publish(self, slices: list[Object]) -> int:
        writes = plan(slices, self.stored.values(), {})
        for old in writes.delete:
            self._write(old["metadata"]["name"], None)
        for new in (*writes.replace, *writes.create):
            self._write(new["metadata"]["name"], new)
        return len(writes.delete) + len(writes.replace) + len(writes.create)

    def _write(self, name: str, new: Object | None) -> None:
        self.writes += 1
        if new is None:
            del self.stored[name]
        else:
            uid = self.stored.get(name, new)["metadata"].get("uid", f"uid-{self.writes}")
            self.stored[name] = {
                **new,
                "metadata": {**new["metadata"], "uid": uid, "resourceVersion": str(self.writes)},
            }
        self.states.append(copy.deepcopy(list(self.stored.values())))


def pool_as_a_scheduler_sees_it(slices: list[Object]) -> list[Object] | None:
    """Return the devices of the newest generation, or None while it is incomplete."""
    newest = max((one["spec"]["pool"]["generation"] for one in slices), default=0)
    current = [one for one in slices if one["spec"]["pool"]["generation"] == newest]
    if not current or len(current) != current[0]["spec"]["pool"]["resourceSliceCount"]:
        return None
    return sorted(
        (device for one in current for device in one["spec"].get("devices", [])), key=lambda device: str(device["name"])
    )


def test_the_first_plan_has_generation_one_and_the_second_plan_is_empty() -> None:
    server = Server()
    assert server.publish(wanted(130)) == 2
    assert {one["spec"]["pool"]["generation"] for one in server.stored.values()} == {1}
    assert server.publish(wanted(130)) == 0


def test_one_changed_slice_is_one_write() -> None:
    server = Server()
    server.publish(wanted(130))
    changed = for_node(DRIVER, NODE, (*gpus(129), Device("gpu-129", "gpu", {"model": "other"}, {})))
    assert server.publish(changed) == 1
    assert {one["spec"]["pool"]["generation"] for one in server.stored.values()} == {1}


@pytest.mark.parametrize("count", [1, 129, 1000])
def test_a_device_that_is_unplugged_and_plugged_is_one_write_each_time(count: int) -> None:
    server, base = Server(), gpus(count)
    server.publish(for_node(DRIVER, NODE, base, Layout(base)))
    assert server.publish(for_node(DRIVER, NODE, base[1:], Layout(base))) == 1
    assert server.publish(for_node(DRIVER, NODE, base, Layout(base))) == 1
    assert {one["spec"]["pool"]["generation"] for one in server.stored.values()} == {1}


def test_the_first_taint_in_a_large_slice_is_a_new_generation_and_each_later_one_is_one_write() -> None:
    server, base = Server(), gpus(1000)

    def publish(*tainted: int) -> int:
        devices = [
            replace(each, taints=(Taint("a", "None"),) if index in tainted else ()) for index, each in enumerate(base)
        ]
        return server.publish(for_node(DRIVER, NODE, devices, Layout(base, server.stored.keys())))

    assert publish() == 8
    assert publish(500) == 9
    assert publish() == publish(510) == publish(510, 440) == 1
    assert {one["spec"]["pool"]["generation"] for one in server.stored.values()} == {2}


def test_a_deleted_slice_is_restored_with_one_write() -> None:
    server = Server()
    server.publish(wanted(300))
    server.stored.pop(wanted(300)[1]["metadata"]["name"])
    assert server.publish(wanted(300)) == 1
    assert pool_as_a_scheduler_sees_it(list(server.stored.values())) is not None


def test_an_edit_of_the_owner_is_repaired() -> None:
    server = Server()
    server.publish(wanted(1))
    next(iter(server.stored.values()))["metadata"]["ownerReferences"] = []
    assert server.publish(wanted(1)) == 1


def test_an_update_has_the_resource_version_of_the_stored_slice() -> None:
    server = Server()
    server.publish(wanted(1))
    (change,) = plan(wanted(1, "b"), server.stored.values(), {}).replace
    assert change["metadata"]["resourceVersion"] == "1"


def test_what_the_server_stores_differently_is_sent_again_only_after_an_edit() -> None:
    (sent,) = wanted(1)
    stored = copy.deepcopy(sent)
    stored["metadata"] |= {"uid": "u", "generation": 1}
    stored["spec"]["pool"]["generation"] = 1
    stored["spec"]["devices"][0]["capacity"]["memory"]["value"] = "81920Mi"
    accepted = {state_key(stored): comparable(sent)}
    assert plan([sent], [stored], {})
    assert not plan([sent], [stored], accepted)
    stored["metadata"]["generation"] = 2
    assert plan([sent], [stored], accepted)


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, 128, 129, 257, 400]), st.sampled_from("ab"), st.sets(st.integers(0, 3))),
        max_size=4,
    )
)
def test_a_scheduler_never_sees_a_partial_change(steps: list[tuple[int, str, set[int]]]) -> None:
    server = Server()
    before: list[Object] | None = None
    for count, model, lost in steps:
        for index in lost:
            for name in [name for name in server.stored if name.startswith(f"{index:05x}-")]:
                del server.stored[name]
        start = len(server.states)
        server.publish(wanted(count, model))
        after = pool_as_a_scheduler_sees_it(list(server.stored.values()))
        assert after is not None
        assert len(after) == count
        for state in server.states[start:]:
            assert pool_as_a_scheduler_sees_it(state) in (None, before, after)
        assert server.publish(wanted(count, model)) == 0
        before = after


some = st.sets(st.sampled_from([0, 1, 63, 64, 100, 127, 128, 129, 199]), max_size=4) | st.just(set(range(128, 200)))


@settings(max_examples=25)
@given(st.lists(st.tuples(some, some, st.booleans()), max_size=4))
def test_with_any_unplugged_and_tainted_devices_slices_obey_the_limits_and_change_atomically(
    steps: list[tuple[set[int], set[int], bool]],
) -> None:
    server, base = Server(), gpus(200)
    before: list[Object] | None = None
    for unplugged, tainted, is_wiped in steps:
        if is_wiped:
            server.stored.clear()
        stored = [
            replace(each, taints=(Taint("a", "None"),) if index in tainted else ())
            for index, each in enumerate(base)
            if index not in unplugged
        ]
        start, slices = len(server.states), for_node(DRIVER, NODE, stored, Layout(base, set(server.stored)))
        server.publish(slices)
        assert find_problems(slices) == []
        after = pool_as_a_scheduler_sees_it(list(server.stored.values()))
        assert [device["name"] for device in after or ()] == sorted(device.name for device in stored)
        assert all(pool_as_a_scheduler_sees_it(state) in (None, before, after) for state in server.states[start:])
        assert server.publish(for_node(DRIVER, NODE, stored, Layout(base, set(server.stored)))) == 0
        before = after


def test_each_pool_has_a_generation_of_its_own() -> None:
    server = Server()
    near, far = Pool("near", gpus(200)), Pool("far", gpus(2))
    server.publish(for_network(DRIVER, [near, far]))
    assert server.publish(for_network(DRIVER, [Pool("near", gpus(200, "b")), far])) == 2
    generations = {one["spec"]["pool"]["name"]: one["spec"]["pool"]["generation"] for one in server.stored.values()}
    assert generations == {"near": 2, "far": 1}
    assert server.publish(for_network(DRIVER, [far])) == 2
    assert [one["spec"]["pool"]["name"] for one in server.stored.values()] == ["far"]


def tainted(*taints: Taint) -> list[Object]:
    return for_node(DRIVER, NODE, (Device("gpu-0", "gpu", {}, {}, taints=taints),))


def test_taint_times_set_by_the_server_are_ignored_and_kept() -> None:
    one, other = Taint("a", "NoSchedule"), Taint("b", "NoSchedule")
    server = Server()
    server.publish(tainted(one))
    (stored,) = server.stored.values()
    stored["spec"]["devices"][0]["taints"][0]["timeAdded"] = "2026-01-01T00:00:00Z"
    assert server.publish(tainted(one)) == 0
    (change,) = plan(tainted(one, other), server.stored.values(), {}).replace
    times = {taint["key"]: taint.get("timeAdded") for taint in change["spec"]["devices"][0]["taints"]}
    assert times == {"a": "2026-01-01T00:00:00Z", "b": None}
