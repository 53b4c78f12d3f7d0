"""The results of `bench driver` as a table: medians with their spread, ratios to each peer, and bounds. Pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

MANY_DEVICES = 1000


@dataclass(frozen=True)
class Quantity:
    """A line of the table: a measured quantity, and the largest ratio to a peer and the largest value that our driver may have."""

    key: str
    title: str
    unit: str
    max_ratio: float | None = None
    max_value: float | None = None
    digits: int = 2

    def bound(self) -> str:
        """Return the bounds as text."""
        relative = f"<= {self.max_ratio:g} x" if self.max_ratio is not None else ""
        absolute = f"<= {self.max_value:g} {self.unit}".rstrip() if self.max_value is not None else ""
        return ", ".join(filter(None, (relative, absolute)))


def _calls() -> list[Quantity]:
    return [
        Quantity(f"{verb} p{rank}, {concurrency}", f"{verb} p{rank}, {concurrency} at a time", "ms", max_ratio=1.0)
        for verb in ("prepare", "unprepare")
        for concurrency in (1, 8)
        for rank in (50, 99)
    ]


QUANTITIES = (
    *_calls(),
    Quantity("start", "start to all slices published", "s", max_ratio=1.0),
    Quantity("writes", "slice writes until then", "", max_value=1, digits=0),
    Quantity("memory idle", "resident memory, idle", "MiB", max_ratio=1.5, max_value=80, digits=1),
    Quantity("memory after", "resident memory, after the calls", "MiB", max_ratio=1.5, max_value=80, digits=1),
    Quantity("idle", "CPU, idle", "%", max_value=0.5),
    Quantity("start, many", f"{MANY_DEVICES} devices: start to all published", "s"),
    Quantity(
        "writes, many",
        f"{MANY_DEVICES} devices: slice writes until then",
        "",
        max_value=math.ceil(MANY_DEVICES / 128),
        digits=0,
    ),
    Quantity("writes, one changed", f"{MANY_DEVICES} devices: slice writes, one changed", "", max_value=1, digits=0),
    Quantity("prepare p50, 1, many", f"{MANY_DEVICES} devices: prepare p50, 1 at a time", "ms"),
    Quantity("memory, many", f"{MANY_DEVICES} devices: resident memory", "MiB", max_value=80, digits=1),
)


@dataclass
class Comparison:
    """All values of all drivers: our driver and its peers.

    `failures` has the reasons for missing values; the drivers in `permanently_failed` would fail again in the next round.
    """

    ours: str
    versions: dict[str, str]
    kubernetes: str
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    failures: dict[str, dict[str, str]] = field(default_factory=dict)
    permanently_failed: set[str] = field(default_factory=set)

    def add(self, driver: str, key: str, value: float) -> None:
        """Add the value of one round."""
        self.values.setdefault(driver, {}).setdefault(key, []).append(value)

    def add_failure(self, driver: str, what: str, why: str, *, permanent: bool = False) -> None:
        """Record why a value is missing. A permanent failure would occur again in the next round."""
        self.failures.setdefault(driver, {})[what] = why
        if permanent:
            self.permanently_failed.add(driver)

    @property
    def peers(self) -> list[str]:
        """Return the titles of the drivers that ours is compared with."""
        return [title for title in self.versions if title != self.ours]

    def median(self, driver: str, key: str) -> float | None:
        """Return the median, or None if there are no values."""
        values = self.values.get(driver, {}).get(key)
        return statistics.median(values) if values else None

    def ratio(self, peer: str, key: str) -> float | None:
        """Return the ratio of our median to a peer's, or None if one of them is missing."""
        own, other = self.median(self.ours, key), self.median(peer, key)
        return None if own is None or not other else own / other

    def meets_bounds(self, quantity: Quantity) -> bool | None:
        """Return whether our driver meets all bounds; without a value it does not.

        Return None if there is no bound, or if a ratio has a bound but no peer has a value.
        """
        own = self.median(self.ours, quantity.key)
        if quantity.max_ratio is None and quantity.max_value is None:
            return None
        if own is None or (quantity.max_value is not None and own > quantity.max_value):
            return False
        if quantity.max_ratio is None:
            return True
        ratios = [ratio for peer in self.peers if (ratio := self.ratio(peer, quantity.key)) is not None]
        return max(ratios) <= quantity.max_ratio if ratios else None

    def header(self) -> list[str]:
        """Return the titles of the columns."""
        return ["what", *self.versions, *(f"ratio to {peer}" for peer in self.peers), "bound"]

    def rows(self) -> list[list[str]]:
        """Return a row for each quantity."""
        return [self._row(quantity) for quantity in QUANTITIES]

    def failure_lines(self) -> list[str]:
        """Return the reasons for missing values, one line each."""
        return [
            f"{driver}, {what}: {why}" for driver, reasons in self.failures.items() for what, why in reasons.items()
        ]

    def as_data(self) -> dict[str, object]:
        """Return the data for `-o json`."""
        lines = [
            {
                "key": q.key,
                "title": q.title,
                "unit": q.unit,
                "bound": q.bound(),
                "kept": self.meets_bounds(q),
                "drivers": self._data(q),
            }
            for q in QUANTITIES
        ]
        return {"kubernetes": self.kubernetes, "versions": self.versions, "quantities": lines, "refused": self.failures}

    def _data(self, quantity: Quantity) -> dict[str, object]:
        return {
            title: {
                "median": self.median(title, quantity.key),
                "values": self.values.get(title, {}).get(quantity.key, []),
            }
            for title in self.versions
        }

    def _row(self, quantity: Quantity) -> list[str]:
        cells = [self._cell(title, quantity) for title in self.versions]
        ratios = [self.ratio(peer, quantity.key) for peer in self.peers]
        mark = {True: " ✓", False: " ✗", None: " (not compared)"}[self.meets_bounds(quantity)]
        return [
            quantity.title,
            *cells,
            *("-" if each is None else f"{each:.2f}" for each in ratios),
            quantity.bound() and quantity.bound() + mark,
        ]

    def _cell(self, driver: str, quantity: Quantity) -> str:
        values = self.values.get(driver, {}).get(quantity.key)
        if not values:
            return "-"
        low, middle, high = (
            f"{each:.{quantity.digits}f}" for each in (min(values), statistics.median(values), max(values))
        )
        return f"{middle} {quantity.unit} ({low} to {high})".replace("  ", " ")


def percentile(values: Sequence[float], rank: int) -> float:
    """Return the smallest value that is at least as large as `rank` percent of all values."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * rank / 100) - 1]
