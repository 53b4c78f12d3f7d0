"""Quantities of Kubernetes, such as 80Gi, 500m and 1e3. Pure.

The API server stores a quantity in canonical form. The driver writes that form, so that it reads back what it wrote.
"""

from __future__ import annotations

import re
from fractions import Fraction

_FORM = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,2})?", re.ASCII)
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_NANO = Fraction(1, 10**9)
_LARGEST = 2**63 - 1


def amount(text: object) -> Fraction | None:
    """Return the value of a quantity; None if it is not a quantity, is finer than 10^-9, or does not fit into 64 bits."""
    parts = _FORM.fullmatch(text) if isinstance(text, str) else None
    if not parts:
        return None
    number, suffix = Fraction(parts[1]), parts[2] or ""
    value = number * (Fraction(2) ** _BINARY[suffix] if suffix in _BINARY else Fraction(10) ** _exponent(suffix))
    is_exact = (value / _NANO).denominator == 1 and (suffix not in _BINARY or value.denominator == 1)
    return value if is_exact and value <= _LARGEST else None


def canonical(text: str) -> str:
    """Return the canonical form: an integer with the largest suffix of the same family. Raise ValueError if it is not a quantity."""
    value, suffix = amount(text), _FORM.fullmatch(text)
    if value is None or suffix is None:
        raise ValueError(f"{text!r} is not a quantity")
    family = suffix[2] or ""
    if value == 0:
        return "0"
    if family in _BINARY and value >= 1024:
        return _whole(value, [(name, Fraction(2) ** power) for name, power in _BINARY.items()])
    if family[:1] in {"e", "E"} and len(family) > 1:
        return _whole(value, [(f"e{power}" if power else "", Fraction(10) ** power) for power in range(-9, 19, 3)])
    return _whole(value, [(name, Fraction(10) ** power) for name, power in _DECIMAL.items()])


def _exponent(suffix: str) -> int:
    return _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])


def _whole(value: Fraction, units: list[tuple[str, Fraction]]) -> str:
    for name, unit in reversed(units):
        if (value / unit).denominator == 1:
            return f"{value / unit}{name}"
    return str(value)
