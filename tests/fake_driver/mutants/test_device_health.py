from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fake_driver.devices.health import HEALTHY, UNHEALTHY, UNKNOWN, Health

if TYPE_CHECKING:
    from tests.fake_driver.mutants.conftest import PartsWith

SERVER = str(Path(__file__).parents[3] / "manifests/hardware/server.yaml")


@pytest.mark.parametrize(
    ("name", "statuses", "has_message"),
    [
        ("", {HEALTHY, UNHEALTHY}, True),
        ("health-unknown", {UNKNOWN}, False),
        ("health-always-well", {HEALTHY}, False),
        ("health-without-words", {HEALTHY, UNHEALTHY}, False),
    ],
)
def test_initial_health(parts_with: PartsWith, name: str, statuses: set[str], has_message: bool) -> None:
    parts = parts_with(name, hardware=SERVER)
    found = [parts.initial_health(device) for device in parts.inventory.devices]
    assert {each.status for each in found} == statuses
    assert any(each.message for each in found) is has_message


@pytest.mark.parametrize(("name", "second"), [("", HEALTHY), ("health-unknown-after-a-restart", UNKNOWN)])
def test_health_unknown_after_a_restart(parts_with: PartsWith, name: str, second: str) -> None:
    starts = [parts_with(name) for _ in range(2)]
    assert [parts.initial_health(parts.inventory.devices[0]).status for parts in starts] == [HEALTHY, second]


@pytest.mark.parametrize(("name", "status"), [("", UNHEALTHY), ("health-told-once", HEALTHY)])
def test_health_told_once(parts_with: PartsWith, name: str, status: str) -> None:
    health_store = parts_with(name).health_store({("n", "gpu-0"): Health()})
    health_store.set(("n", "gpu-0"), Health(UNHEALTHY))
    health_store.set(("n", "gpu-1"), Health(UNKNOWN))
    assert health_store.count_by_status() == {status: 1, UNKNOWN: 1}
