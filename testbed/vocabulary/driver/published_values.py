"""What a driver publishes about one device under one name, in the form in which a CEL expression asks for it. Pure; for `driver`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from testbed.errors import DriverFailed
from testbed.kube.client import Object
from testbed.vocabulary.driver.quantities import amount


@dataclass(frozen=True)
class PublishedValue:
    """An attribute or a capacity of a device: `device.attributes["domain"].name == literal`."""

    domain: str
    name: str
    literal: str

    @property
    def full_name(self) -> str:
        """The name with its domain, as constraints want it."""
        return f"{self.domain}/{self.name}"

    @property
    def amount(self) -> Fraction:
        """The number behind a capacity."""
        return amount(self.literal.removeprefix('quantity("').removesuffix('")'))


def saying(device: Object, name: str, driver: str) -> PublishedValue:
    """What the slice says about the device under that name. A name without domain is in the driver's."""
    domain, _, short = name.rpartition("/")
    facts = {**device.get("attributes", {}), **device.get("capacity", {})}
    keys = (short, f"{driver}/{short}") if domain in ("", driver) else (name,)
    value = next((facts[key] for key in keys if key in facts), None)
    if value is None:
        raise DriverFailed(
            f"device {device['name']} of {driver} has no {name}",
            hint=f"look at the driver file; it has {', '.join(sorted(facts)) or 'nothing'}",
        )
    return PublishedValue(domain or driver, short, _literal(value))


def with_domains(attributes: Object, driver: str) -> dict[str, Object]:
    """Attributes by their full names: one without a domain is in the driver's."""
    return {name if "/" in name else f"{driver}/{name}": dict(value) for name, value in attributes.items()}


def _literal(value: Any) -> str:
    """A value of a slice as CEL writes it. A capacity is {value: 80Gi}."""
    ((kind, said),) = (
        (key, each) for key, each in value.items() if key in ("string", "int", "bool", "version", "value")
    )
    if kind == "version":
        return f'semver("{said}")'
    if kind == "value":
        return f'quantity("{said}")'
    return json.dumps(said)
