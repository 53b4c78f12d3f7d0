"""Medians with their spread, and how they are shown. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured quantity: its values and, where there is one, the bound that it must keep."""

    name: str
    unit: str
    values: tuple[float, ...]
    bound: float | None = None

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def meets_bound(self) -> bool:
        """Whether the median keeps the bound."""
        return self.bound is None or self.median <= self.bound

    def as_row(self) -> tuple[str, str, str, str]:
        """Name, median, spread and bound as text."""
        spread = f"{min(self.values):.2f} to {max(self.values):.2f}"
        bound = "" if self.bound is None else f"<= {self.bound:g} {'✓' if self.meets_bound else '✗'}"
        return self.name, f"{self.median:.2f} {self.unit}", spread, bound

    def as_data(self) -> dict[str, object]:
        """For `-o json`."""
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "values": list(self.values),
            "bound": self.bound,
        }


def figures(samples: Sequence[dict[str, float]], unit: str, bounds: dict[str, float]) -> list[Figure]:
    """One figure for each name in the samples, in the order of the first sample."""
    return [Figure(name, unit, tuple(s[name] for s in samples if name in s), bounds.get(name)) for name in samples[0]]
