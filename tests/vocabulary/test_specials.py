from __future__ import annotations

from typing import Any

import pytest

from testbed.drivers.slices import Device
from testbed.errors import DriverFailed
from testbed.vocabulary import specials

DRIVER = "d.example.com"


def _device(name: str, **spec: Any) -> tuple[Device, Any]:
    return Device(DRIVER, "pool", name), {"name": name, **spec}


def _draw(**counters: int | str) -> list[Any]:
    return [{"counterSet": "gpu-0", "counters": {name: {"value": str(each)} for name, each in counters.items()}}]


def _slices(parts: dict[str, dict[str, int | str]], there: dict[str, int | str]) -> list[Any]:
    pool = {"name": "pool"}
    devices = [{"name": name, "consumesCounters": _draw(**takes)} for name, takes in parts.items()]
    sets = [{"name": "gpu-0", "counters": _draw(**there)[0]["counters"]}]
    return [{"spec": {"pool": pool, "sharedCounters": sets}}, {"spec": {"pool": pool, "devices": devices}}]


PARTS: dict[str, dict[str, int | str]] = {
    "whole": {"compute": 7, "memory": "8Gi"},
    "small": {"compute": 1, "memory": "1Gi"},
    "large": {"compute": 4, "memory": "4Gi"},
    "other": {"compute": 4, "memory": "4Gi"},
}


def test_a_taint_is_found_with_its_device() -> None:
    taints = [
        {"key": "k", "effect": "NoExecute"},
        {"key": "x", "value": "v", "effect": "NoSchedule", "timeAdded": "now"},
    ]
    found = specials.tainted([_device("plain"), _device("bad", taints=taints)], "NoSchedule")
    assert (found.device.name, found.key, found.value, found.since) == ("bad", "x", "v", "now")


def test_a_taint_that_no_device_has() -> None:
    with pytest.raises(DriverFailed, match="no device with a taint NoExecute"):
        specials.tainted([_device("plain", taints=[{"key": "k", "effect": "NoSchedule"}])], "NoExecute")


def test_shared_devices_are_found() -> None:
    described = [_device("b", allowMultipleAllocations=True), _device("a", allowMultipleAllocations=True), _device("c")]
    assert [each.name for each in specials.shared(described)] == ["a", "b"]
    with pytest.raises(DriverFailed, match="several claims"):
        specials.shared([_device("c")])


@pytest.mark.parametrize(
    ("capacity", "share"),
    [({"value": "16Gi", "requestPolicy": {"default": "2Gi"}}, "2Gi"), ({"value": "16Gi"}, "16Gi")],
)
def test_what_a_claim_gets_that_does_not_say_how_much(capacity: Any, share: str) -> None:
    assert specials.default_share({"name": "a", "capacity": {f"{DRIVER}/memory": capacity}}, "memory") == share


def test_a_capacity_that_a_device_does_not_have() -> None:
    with pytest.raises(DriverFailed, match="device a has no memory"):
        specials.default_share({"name": "a"}, "memory")


def test_a_device_and_its_parts() -> None:
    found = specials.divisible(_slices(PARTS, PARTS["whole"]), DRIVER)
    assert found.whole.name == "whole"
    assert [each.name for each in found.companions] == ["small", "large"]
    assert [each.name for each in found.rivals] == ["large", "other"]
    assert found.missing_counters == frozenset()


def test_counters_that_nobody_publishes() -> None:
    found = specials.divisible(_slices(PARTS, {"compute": 7}), DRIVER)
    assert found.missing_counters == {("gpu-0", "memory")}


@pytest.mark.parametrize(
    ("parts", "word", "problem"),
    [
        ({"a": {"compute": 1}, "b": {"compute": 1}}, "whole", "excludes all others"),
        ({"whole": {"compute": 7}, "a": {"compute": 1}}, "companions", "at the same time"),
        ({"whole": {"compute": 7}, "a": {"compute": 1}, "b": {"compute": 1}}, "rivals", "exclude each other"),
    ],
)
def test_parts_that_a_test_needs_and_a_driver_lacks(parts: Any, word: str, problem: str) -> None:
    found = specials.divisible(_slices(parts, {"compute": 7}), DRIVER)
    with pytest.raises(DriverFailed, match=problem):
        getattr(found, word)


def test_devices_that_share_nothing_are_not_parts() -> None:
    with pytest.raises(DriverFailed, match="draw from the same counters"):
        specials.divisible(_slices({"alone": {"compute": 7}}, {"compute": 7}), DRIVER)
