"""`bench driver` with the smallest amount of work, for our driver and the Go peers that are in the cache, on a real API server."""

from __future__ import annotations

import os

import pytest

from testbed.bench.driver import DriverBenchPlan, measure
from testbed.binaries import minors
from testbed.progress import Silent


def test_all_quantities_of_our_driver_are_measured_and_slice_writes_are_minimal() -> None:
    if os.geteuid() != 0:
        pytest.fail("this test needs root")
    found = measure(DriverBenchPlan(minors()[0], claims=5, rounds=1, idle=0.2, build=False), Silent())

    assert found.failures.get(found.ours, {}) == {}
    for quantity in found.as_data()["quantities"]:  # type: ignore[attr-defined]  # it is a list
        assert len(quantity["drivers"][found.ours]["values"]) == 1, quantity
    assert [found.median(found.ours, key) for key in ("writes", "writes, many", "writes, one changed")] == [1, 8, 1]
    for peer in found.peers:
        assert found.median(peer, "prepare p50, 1"), found.failures
