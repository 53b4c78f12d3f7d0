"""Kubernetes quantities, such as 80Gi, as numbers. Pure; for published values and counters."""

from __future__ import annotations

import re
from fractions import Fraction

from testbed.errors import DriverFailed

_QUANTITY = re.compile(
    r"(?P<number>[+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(?P<unit>[KMGTPE]i|[numkMGTPE]?)(?:[eE](?P<power>[+-]?\d+))?"
)
_BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def amount(quantity: object) -> Fraction:
    """Return a quantity as a number; DriverFailed if it is none."""
    found = _QUANTITY.fullmatch(str(quantity))
    if not found:
        raise DriverFailed(f"a ResourceSlice of the driver has {quantity!r}, which is not a quantity")
    unit, power = found["unit"], int(found["power"] or 0)
    scale = Fraction(_BINARY[unit]) if unit in _BINARY else Fraction(10) ** _DECIMAL[unit]
    return Fraction(found["number"]) * scale * Fraction(10) ** power
