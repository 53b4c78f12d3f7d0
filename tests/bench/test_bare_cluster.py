"""What counts as published."""

from typing import Any

from testbed.bench.bare_cluster import count_published_devices


def slice_(devices: int, *, of: int, generation: int = 1) -> dict[str, Any]:
    pool = {"name": "bench", "generation": generation, "resourceSliceCount": of}
    return {"spec": {"pool": pool, "devices": [{}] * devices}}


def test_a_complete_pool_counts_all_devices() -> None:
    assert count_published_devices([slice_(128, of=2), slice_(3, of=2)]) == 131


def test_a_pool_that_lacks_a_slice_counts_none() -> None:
    assert count_published_devices([slice_(128, of=2)]) == 0


def test_a_pool_that_is_being_rewritten_counts_none() -> None:
    assert count_published_devices([slice_(1, of=2), slice_(1, of=2, generation=2)]) == 0
