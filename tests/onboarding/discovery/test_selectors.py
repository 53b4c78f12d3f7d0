from typing import Any

import pytest

from testbed.onboarding.discovery.inference.selectors import selects

GPU: dict[str, Any] = {
    "name": "gpu-0",
    "attributes": {"type": {"string": "gpu"}, "example.com/index": {"int": 3}, "driverVersion": {"version": "550.1.2"}},
    "capacity": {"memory": {"value": "80Gi"}},
}


def device_class(*expressions: str) -> dict[str, Any]:
    return {"spec": {"selectors": [{"cel": {"expression": each}} for each in expressions]}}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('device.driver == "gpu.example"', True),
        ("device.driver == 'other.example'", False),
        ('device.attributes["gpu.example"].type == "gpu"', True),
        ("device.attributes['gpu.example'].type != 'gpu' || device.attributes['example.com'].index > 2", True),
        # What a device lacks is no match, and decides nothing beside a side that decides.
        ('device.attributes["gpu.example"].nothing == "gpu"', False),
        ('device.attributes["gpu.example"].nothing == "x" || device.driver == "gpu.example"', True),
        ("!('purpose' in device.attributes['gpu.example'])", True),
        ('"type" in device.attributes["gpu.example"] && has(device.attributes["gpu.example"].type)', True),
        ('device.attributes["no.domain"].?type.orValue("") == ""', True),
        ('device.attributes["gpu.example"].?type.orValue("") == "gpu"', True),
        ('device.attributes[?"gpu.example"].?type.hasValue()', True),
        ('device.capacity["gpu.example"].memory.compareTo(quantity("40Gi")) >= 0', True),
        ('device.capacity["gpu.example"].memory.isGreaterThan(quantity("100Gi"))', False),
        ('device.attributes["gpu.example"].driverVersion.compareTo(semver("551.0.0")) < 0', True),
        ('device.attributes["gpu.example"].type in ["gpu", "mig"]', True),
        ('device.attributes["gpu.example"].type.matches("^g.u$") ? true : false', True),
        ("device.allowMultipleAllocations", False),
        # Parts of CEL that are not known.
        ("device.attributes['gpu.example'].exists(name, name == 'type')", None),
        ("device.driver ==", None),
    ],
)
def test_evaluates_what_classes_use(expression: str, expected: bool | None) -> None:
    assert selects(device_class(expression), "gpu.example", GPU) is expected


def test_all_selectors_of_a_class_must_match() -> None:
    assert selects(device_class("true", "device.driver == 'gpu.example'"), "gpu.example", GPU) is True
    assert selects(device_class("true", "false"), "gpu.example", GPU) is False
    assert selects({"spec": {}}, "gpu.example", GPU) is True
