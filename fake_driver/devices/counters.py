"""The arithmetic of shared counters. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from fake_driver.devices.model import CounterConsumption
from fake_driver.devices.quantities import amount


def exceeds_counters(consumption: Iterable[CounterConsumption]) -> bool:
    """Return True if devices consume more from one counter set than it has, so they cannot be used at the same time."""
    left: dict[str, Fraction] = {}
    for each in consumption:
        for name, text in each.counters.items():
            left[name] = left.get(name, _size(each.available.get(name))) - _size(text)
    return any(size < 0 for size in left.values())


def _size(text: str | None) -> Fraction:
    return amount(text) or Fraction()
