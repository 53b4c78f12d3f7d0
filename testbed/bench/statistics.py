"""Medians with their spread, as rows of a table and as data. Pure functions, used by suites.py and up.py."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A measured quantity with its values and an optional upper bound of the median."""

    name: str
    unit: str
    values: tuple[float, ...]
    bound: float | None = None

    @property
    def median(self) -> float:
        """Return the median of the values."""
        return statistics.median(self.values)

    @property
    def meets_bound(self) -> bool:
        """Return True if there is no bound or the median does not exceed it."""
        return self.bound is None or self.median <= self.bound

    def as_row(self) -> tuple[str, str, str, str]:
        """Return name, median, spread and bound as text."""
        spread = f"{min(self.values):.2f} to {max(self.values):.2f}"
        bound = "" if self.bound is None else f"<= {self.bound:g} {'✓' if self.meets_bound else '✗'}"
        return self.name, f"{self.median:.2f} {self.unit}", spread, bound

    def as_data(self) -> dict[str, object]:
        """Return the data for `-o json`."""
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "values": list(self.values),
            "bound": self.bound,
        }


def figures(samples: Sequence[dict[str, float]], unit: str, bounds: dict[str, float]) -> list[Figure]:
    """Return a figure for each name in the samples, in the order of the first sample."""
    return [Figure(name, unit, tuple(s[name] for s in samples if name in s), bounds.get(name)) for name in samples[0]]
