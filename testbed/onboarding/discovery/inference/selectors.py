"""Evaluates CEL selectors of DeviceClasses for devices of ResourceSlices. Pure.

The scheduler decides which devices a class selects; this only suggests classes for a driver file, which is checked in a cluster later.
"""

from __future__ import annotations

from typing import Any

from testbed.kube.client import Object
from testbed.onboarding.discovery.inference.cel import parse
from testbed.onboarding.discovery.inference.cel_values import Domains, EvaluationError, Unsupported, quantity


def selects(device_class: Object, driver: str, device: Object) -> bool | None:
    """Return True if all selectors of a class match a driver's device; None if this module does not know a part of one."""
    selectors = (device_class.get("spec") or {}).get("selectors") or ()
    try:
        return all(_matches(str((each.get("cel") or {}).get("expression", "")), driver, device) for each in selectors)
    except Unsupported:
        return None


def _matches(expression: str, driver: str, device: Object) -> bool:
    evaluate = parse(expression)
    try:
        return evaluate({"device": _variables(driver, device)}) is True
    except EvaluationError:
        return False


def _variables(driver: str, device: Object) -> dict[str, Any]:
    attributes = {name: next(iter(value.values()), None) for name, value in (device.get("attributes") or {}).items()}
    capacity = {name: quantity(each.get("value")) for name, each in (device.get("capacity") or {}).items()}
    return {
        "driver": driver,
        "attributes": Domains(attributes, driver),
        "capacity": Domains(capacity, driver),
        "allowMultipleAllocations": bool(device.get("allowMultipleAllocations")),
    }
