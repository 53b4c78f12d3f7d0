"""Attributes and capacities that a driver publishes for its devices, as CEL expressions compare them. Pure; for Driver."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from testbed.errors import DriverFailed
from testbed.kube.client import Object
from testbed.models.names import full_name, value_of
from testbed.vocabulary.driver.quantities import amount


@dataclass(frozen=True)
class PublishedValue:
    """An attribute or a capacity of a device: `device.attributes["domain"].name == literal`."""

    domain: str
    name: str
    literal: str
    node: str = field(
        default="", compare=False
    )  # of an identity: the only node with the device, where its pods have to run

    @property
    def full_name(self) -> str:
        """Return the name with its domain, as constraints need it."""
        return f"{self.domain}/{self.name}"

    @property
    def amount(self) -> Fraction:
        """Return the number of a capacity."""
        return amount(self.literal.removeprefix('quantity("').removesuffix('")'))


def read_value(device: Object, name: str, driver: str) -> PublishedValue:
    """Return an attribute or a capacity of a published device; a name without domain has the driver's. DriverFailed if it is missing."""
    published = {**device.get("attributes", {}), **device.get("capacity", {})}
    value = value_of(name, published, driver)
    if value is None:
        raise DriverFailed(
            f"device {device['name']} of {driver} has no attribute or capacity {name}\n"
            f"  last seen: {', '.join(sorted(published)) or 'none'}",
            hint="check the names in the driver file",
        )
    domain, _, short = full_name(name, driver).rpartition("/")
    return PublishedValue(domain, short, _literal(value))


def with_domains(attributes: Object, driver: str) -> dict[str, Object]:
    """Return attributes by their full names; one without domain gets the driver's."""
    return {full_name(name, driver): dict(value) for name, value in attributes.items()}


def _literal(value: Any) -> str:
    """Return a value of a slice as a CEL literal. A capacity is {value: 80Gi}."""
    ((kind, content),) = (
        (key, each) for key, each in value.items() if key in ("string", "int", "bool", "version", "value")
    )
    if kind == "version":
        return f'semver("{content}")'
    if kind == "value":
        return f'quantity("{content}")'
    return json.dumps(content)
