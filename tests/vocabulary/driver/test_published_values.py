from __future__ import annotations

from typing import Any

import pytest

from testbed.errors import DriverFailed
from testbed.vocabulary.driver.published_values import PublishedValue, read_value

DEVICE: Any = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": 'H"100'},
        "index": {"int": 3},
        "ecc": {"bool": True},
        "driverVersion": {"version": "1.2.3"},
        "gpu.example.com/uuid": {"string": "u"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:10"},
    },
    "capacity": {"memory": {"value": "80Gi", "requestPolicy": {"default": "1Gi"}}},
}


@pytest.mark.parametrize(
    ("name", "domain", "short", "literal"),
    [
        ("model", "gpu.example.com", "model", r'"H\"100"'),
        ("gpu.example.com/model", "gpu.example.com", "model", r'"H\"100"'),
        ("uuid", "gpu.example.com", "uuid", '"u"'),
        ("gpu.example.com/uuid", "gpu.example.com", "uuid", '"u"'),
        ("index", "gpu.example.com", "index", "3"),
        ("ecc", "gpu.example.com", "ecc", "true"),
        ("driverVersion", "gpu.example.com", "driverVersion", 'semver("1.2.3")'),
        ("memory", "gpu.example.com", "memory", 'quantity("80Gi")'),
        ("resource.kubernetes.io/pcieRoot", "resource.kubernetes.io", "pcieRoot", '"pci0000:10"'),
    ],
)
def test_published_values_are_cel_literals(name: str, domain: str, short: str, literal: str) -> None:
    value = read_value(DEVICE, name, "gpu.example.com")
    assert value == PublishedValue(domain, short, literal)
    assert value.full_name == f"{domain}/{short}"


@pytest.mark.parametrize("name", ["colour", "gpu.example.com/colour", "elsewhere.example.com/model", "pcieRoot"])
def test_a_missing_value_blames_the_driver(name: str) -> None:
    with pytest.raises(DriverFailed, match=f"device gpu-0 of gpu.example.com has no attribute or capacity {name}"):
        read_value(DEVICE, name, "gpu.example.com")
