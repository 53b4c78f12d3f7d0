"""The number of published devices in complete and incomplete pools."""

from typing import Any

from testbed.bench.bare_cluster import count_published_devices


def slice_(devices: int, *, of: int, generation: int = 1) -> dict[str, Any]:
    pool = {"name": "bench", "generation": generation, "resourceSliceCount": of}
    return {"spec": {"pool": pool, "devices": [{}] * devices}}


def test_all_devices_of_a_complete_pool_count() -> None:
    assert count_published_devices([slice_(128, of=2), slice_(3, of=2)]) == 131


def test_no_devices_count_if_a_slice_is_missing() -> None:
    assert count_published_devices([slice_(128, of=2)]) == 0


def test_no_devices_count_if_slices_have_different_generations() -> None:
    assert count_published_devices([slice_(1, of=2), slice_(1, of=2, generation=2)]) == 0
