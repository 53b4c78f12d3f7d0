from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.preparing.opaque_configuration import API_VERSION, OpaqueConfig

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi
    from tests.fake_driver.mutants.conftest import PartsWith, StartMutant

DRIVER = "gpu.dra-testbed.example"


def config(driver: str = DRIVER, interval: str = "Short") -> Any:
    sharing = {"strategy": "TimeSlicing", "interval": interval}
    parameters = {"apiVersion": API_VERSION, "kind": "GpuConfig", "sharing": sharing}
    return {"source": "FromClaim", "opaque": {"driver": driver, "parameters": parameters}}


def precedence(env: str, source: str, strategy: str, *requests: str) -> Any:
    parameters = {"apiVersion": API_VERSION, "kind": "GpuConfig", "env": {"a": env}, "sharing": {"strategy": strategy}}
    return {"source": source, "requests": list(requests), "opaque": {"driver": DRIVER, "parameters": parameters}}


CONFIGS = (
    precedence("1", "FromClass", "TimeSlicing", "gpu"),
    precedence("2", "FromClaim", "SpacePartitioning"),
    precedence("3", "FromClaim", "SpacePartitioning", "other"),
)


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("", {"admin_a=1", "user_a=2", "GPU_DEVICE_GPU_0_SHARING_STRATEGY=SpacePartitioning"}),
        ("ignores-config-order", {"admin_a=1", "user_a=2", "GPU_DEVICE_GPU_0_SHARING_STRATEGY=TimeSlicing"}),
        ("ignores-config-scope", {"admin_a=1", "user_a=3", "GPU_DEVICE_GPU_0_SHARING_STRATEGY=SpacePartitioning"}),
        ("ignores-class-config", {"user_a=2", "GPU_DEVICE_GPU_0_SHARING_STRATEGY=SpacePartitioning"}),
    ],
)
def test_precedence(mutant: StartMutant, fake_api: FakeApi, name: str, variables: set[str]) -> None:
    driver = mutant(name)
    assert not driver.prepare(fake_api.claim(config=CONFIGS)).error
    assert {each for each in driver.env if each.startswith(("user_", "admin_")) or "STRATEGY" in each} == variables


@pytest.mark.parametrize(
    ("name", "claim_config", "is_applied"),
    [
        ("", config(), True),
        ("ignores-claim-config", config(), False),
        ("swallows-config-errors", config(), True),
        ("", config("another-driver.example"), False),
        ("takes-config-of-others", config("another-driver.example"), True),
    ],
)
def test_configuration_of_a_claim(
    mutant: StartMutant, fake_api: FakeApi, name: str, claim_config: Any, is_applied: bool
) -> None:
    driver = mutant(name)
    assert not driver.prepare(fake_api.claim(config=(claim_config,))).error
    assert ("GPU_DEVICE_GPU_0_SHARING_INTERVAL=Short" in driver.env) is is_applied


@pytest.mark.parametrize(("name", "error"), [("", "sharing.interval"), ("swallows-config-errors", "")])
def test_swallows_config_errors(mutant: StartMutant, fake_api: FakeApi, name: str, error: str) -> None:
    found = mutant(name).prepare(fake_api.claim(config=(config(interval="Sometimes"),))).error
    assert error in found
    assert bool(found) is bool(error)


@pytest.mark.parametrize(("name", "names_the_field"), [("", True), ("hides-the-invalid-field", False)])
def test_hides_the_invalid_field(mutant: StartMutant, fake_api: FakeApi, name: str, names_the_field: bool) -> None:
    error = mutant(name).prepare(fake_api.claim(config=(config(interval="Sometimes"),))).error
    assert error
    assert ("sharing.interval" in error) is names_the_field


def test_ignores_config_of_subrequests(parts_with: PartsWith) -> None:
    configs = [
        OpaqueConfig("GpuConfig", requests=("r/sub",)),
        OpaqueConfig("GpuConfig", requests=("r",)),
        OpaqueConfig("GpuConfig"),
    ]
    assert list(parts_with("ignores-config-of-subrequests").config_order(configs)) == configs[1:]


@pytest.mark.parametrize(
    ("name", "request_name", "is_refused"),
    [
        ("", "device/common", True),
        ("", "device", True),
        ("ignores-config-of-alternatives", "device/common", False),
        ("ignores-config-of-alternatives", "device", False),
    ],
)
def test_ignores_config_of_alternatives(
    mutant: StartMutant, fake_api: FakeApi, name: str, request_name: str, is_refused: bool
) -> None:
    claim = fake_api.claim(config=({**config(interval="Sometimes"), "requests": [request_name]},))
    (result,) = fake_api.claims["default", "one"]["status"]["allocation"]["devices"]["results"]
    result["request"] = "device/common"
    assert bool(mutant(name).prepare(claim).error) is is_refused


@pytest.mark.parametrize(("name", "is_kept"), [("", False), ("configuration-outlives-its-claim", True)])
def test_configuration_outlives_its_claim(mutant: StartMutant, fake_api: FakeApi, name: str, is_kept: bool) -> None:
    driver, first = mutant(name), fake_api.claim(config=(config(interval="Short"),))
    assert not driver.prepare(first).error
    driver.unprepare(first)
    assert not driver.prepare(fake_api.claim("two")).error
    assert ("GPU_DEVICE_GPU_0_SHARING_INTERVAL=Short" in driver.env) is is_kept
