from __future__ import annotations

from pathlib import Path

from testbed.drivers.published import kept_slices
from testbed.drivers.published.record import SliceRecord, devices_in
from testbed.drivers.published.slices import Device, pools
from testbed.kube.client import Object
from tests.fakes.cluster import DRIVER, slice_spec

GPU = Device(DRIVER, "a", "gpu-0")


def _slice(node: str, devices: int, **pool: int) -> Object:
    return {"metadata": {"name": node}, "spec": slice_spec(node, devices, **pool)}


def _claim(*devices: Device, uid: str = "one") -> Object:
    results = [{"driver": each.driver, "pool": each.pool, "device": each.name} for each in devices]
    return {
        "metadata": {"namespace": "here", "name": "claim", "uid": uid},
        "status": {"allocation": {"devices": {"results": results}}},
    }


def _renamed(slice_: Object, uuid: str) -> Object:
    device, *others = slice_["spec"]["devices"]
    changed = {**device, "attributes": {"uuid": {"string": uuid}}}
    return {**slice_, "spec": {**slice_["spec"], "devices": [changed, *others]}}


def _uuid(record: SliceRecord) -> str:
    (found,) = record.allocated_to("here", "claim")
    return str(found.description["attributes"]["uuid"]["string"])


def test_an_allocation_keeps_what_slices_said_at_the_time() -> None:
    record = SliceRecord()
    record.observe([_slice("a", 2)])
    record.remember_allocation(_claim(GPU))
    record.observe([_renamed(_slice("a", 2), "changed")])
    record.remember_allocation(_claim(GPU))
    assert _uuid(record) == "a-uuid-0"
    record.remember_allocation(_claim(GPU, uid="two"))
    assert _uuid(record) == "changed"


def test_a_device_is_known_after_the_driver_removed_it() -> None:
    record = SliceRecord()
    record.observe([_slice("a", 2)])
    now = [_slice("a", 0)]
    record.observe(now)
    record.remember_allocation(_claim(GPU))
    assert _uuid(record) == "a-uuid-0"
    assert record.absent_from(now, DRIVER) == {GPU, Device(DRIVER, "a", "gpu-1")}
    assert record.absent_from(now, "other.example") == frozenset()
    record.forget([GPU])
    assert record.absent_from(now, DRIVER) == {Device(DRIVER, "a", "gpu-1")}
    assert _uuid(record) == "a-uuid-0"


def test_devices_are_added_to_the_newest_slice_of_their_pool() -> None:
    record = SliceRecord()
    record.observe([_slice("a", 2), _slice("b", 1)])
    newer = _slice("a", 0, generation=2)
    (pool,) = pools(record.added_to([_slice("a", 1), newer], [GPU]), DRIVER)
    assert (pool.generation, pool.devices, pool.complete) == (2, 1, True)
    assert newer["spec"]["devices"] == []


def test_devices_of_a_pool_without_slices_get_one() -> None:
    record = SliceRecord()
    record.observe([_slice("a", 2)])
    (pool,) = pools(record.added_to([], [GPU]), DRIVER)
    assert (pool.name, pool.nodes, pool.devices) == ("a", frozenset({"a"}), 1)


def test_a_claim_that_was_never_allocated_has_no_devices() -> None:
    record = SliceRecord()
    record.remember_allocation({"metadata": {"name": "claim"}})
    assert record.allocated_to("here", "claim") == ()
    assert devices_in({"metadata": {}, "status": {"allocation": None}}) == frozenset()


def test_slices_from_before_a_run_are_kept_for_all_its_processes(tmp_path: Path) -> None:
    assert kept_slices.load(tmp_path) == []
    kept_slices.keep(tmp_path, [_slice("a", 2)])
    record = SliceRecord()
    record.observe(kept_slices.load(tmp_path))
    assert GPU in record.newest
    kept_slices.discard(tmp_path)
    kept_slices.discard(tmp_path)
    assert list(tmp_path.iterdir()) == []
