from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from fake_driver.devices.health import UNHEALTHY, UNKNOWN, Health, HealthStore, initial_health
from fake_driver.devices.model import Attributes, Device


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, Health()),
        ({"healthy": True}, Health()),
        ({"healthy": "no"}, Health()),
        ({"healthy": False}, Health(UNHEALTHY, "the hardware file says so")),
    ],
)
def test_a_device_is_healthy_at_first_unless_the_hardware_file_says_otherwise(
    attributes: Attributes, expected: Health
) -> None:
    assert initial_health(Device("gpu-0", "gpu", attributes, {})) == expected


def test_a_reader_waits_for_a_change() -> None:
    health_store = HealthStore({("p", "a"): Health()})
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(health_store.wait_for_change, 1, 5)
        health_store.set(("p", "a"), Health(UNKNOWN))
        found = reading.result(5)
    assert found == (2, {("p", "a"): Health(UNKNOWN)})


def test_a_reader_without_a_change_gets_the_same_after_the_timeout_and_none_after_close() -> None:
    health_store = HealthStore({("p", "a"): Health()})
    assert health_store.wait_for_change(1, 0.01) == (1, {("p", "a"): Health()})
    health_store.remove(("p", "a"))
    assert health_store.wait_for_change(1, 5) == (2, {})
    health_store.close()
    assert health_store.wait_for_change(2, 5) is None
