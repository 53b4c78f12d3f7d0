from __future__ import annotations

from typing import Any

from testbed.drivers.published.pool_transitions import pool_states

DRIVER, POOL = "gpu.example", "node-1"


def part(name: str, generation: int, count: int, *devices: str, **more: Any) -> dict[str, Any]:
    pool = {"name": POOL, "generation": generation, "resourceSliceCount": count}
    spec = {"driver": DRIVER, "pool": pool, "devices": [{"name": each, **more} for each in devices]}
    return {"metadata": {"name": name}, "spec": spec}


def states(before: list[dict[str, Any]], *events: tuple[str, dict[str, Any]]) -> list[tuple[int, tuple[str, ...]]]:
    watched = [{"type": kind, "object": each} for kind, each in events]
    return [(state.generation, state.names) for state in pool_states(before, watched, DRIVER, POOL)]


def test_one_write_leads_to_one_new_state() -> None:
    after = part("a", 1, 1, "gpu-1")
    assert states([part("a", 1, 1, "gpu-0", "gpu-1")], ("MODIFIED", after), ("MODIFIED", after)) == [
        (1, ("gpu-0", "gpu-1")),
        (1, ("gpu-1",)),
    ]


def test_a_new_generation_hides_partial_writes() -> None:
    before = [part("a", 1, 2, "gpu-0"), part("b", 1, 2, "gpu-1")]
    writes = [("MODIFIED", part("a", 2, 2, "gpu-1")), ("MODIFIED", part("b", 2, 2, "gpu-2"))]
    assert states(before, *writes) == [(1, ("gpu-0", "gpu-1")), (2, ("gpu-1", "gpu-2"))]


def test_without_a_new_generation_a_partial_write_is_a_state() -> None:
    before = [part("a", 1, 2, "gpu-0"), part("b", 1, 2, "gpu-1")]
    writes = [("MODIFIED", part("a", 1, 2, "gpu-1")), ("MODIFIED", part("b", 1, 2, "gpu-2"))]
    assert states(before, *writes)[1] == (1, ("gpu-1", "gpu-1"))


def test_a_missing_pool_is_not_a_state() -> None:
    before = part("a", 1, 1, "gpu-0")
    assert states([before], ("DELETED", before), ("ADDED", part("a", 2, 1, "gpu-0"))) == [
        (1, ("gpu-0",)),
        (2, ("gpu-0",)),
    ]


def test_the_time_of_a_taint_does_not_matter() -> None:
    taints = [{"key": "k", "effect": "NoSchedule"}]
    later = [{"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}]
    before = part("a", 1, 1, "gpu-0", taints=taints)
    assert len(states([before], ("MODIFIED", part("a", 1, 1, "gpu-0", taints=later)))) == 1


def test_slices_of_other_pools_and_drivers_do_not_count() -> None:
    other = part("z", 9, 1, "gpu-9")
    other["spec"]["driver"] = "nic.example"
    assert states([part("a", 1, 1, "gpu-0")], ("ADDED", other)) == [(1, ("gpu-0",))]
