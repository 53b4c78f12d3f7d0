"""What devices take together from a set of counters that they share. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from fake_driver.devices.model import CounterConsumption
from fake_driver.devices.quantities import amount


def exceeds_counters(draws: Iterable[CounterConsumption]) -> bool:
    """Whether these, all of one set, take more than the set has: not all of the devices can be used at the same time."""
    left: dict[str, Fraction] = {}
    for draw in draws:
        for name, text in draw.counters.items():
            left[name] = left.get(name, _size(draw.available.get(name))) - _size(text)
    return any(size < 0 for size in left.values())


def _size(text: str | None) -> Fraction:
    return amount(text) or Fraction()
