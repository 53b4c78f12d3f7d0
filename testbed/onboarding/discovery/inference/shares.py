"""Finds amounts of a shared capacity that tests can request: with what a device has, and what its request policy allows. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from fractions import Fraction
from typing import Any

from testbed.kube.client import Object
from testbed.onboarding.discovery.facts import PublishedDevice
from testbed.vocabulary.driver.quantities import amount

_UNITS = [(f"{letter}i", 1024**power) for power, letter in reversed(list(enumerate("KMGTPE", 1)))]


def shared_capacity(devices: Collection[PublishedDevice]) -> dict[str, str] | None:
    """Return a capacity that all devices have, with amounts of the smallest device; None if no capacity can be halved."""
    names = set.intersection(*(set(each.capacity) for each in devices)) if devices else set()
    for name in sorted(names, key=lambda each: ("memory" not in each, each)):
        smallest = min(devices, key=lambda each: amount(each.capacity[name]))
        found = amounts(amount(smallest.capacity[name]), smallest.policy(name))
        if found:
            return {"name": name, **{key: quantity(value) for key, value in found.items()}}
    return None


def amounts(whole: Fraction, policy: Object) -> dict[str, Fraction] | None:
    """Return the amounts of `optional.capacity`: half, uneven with rounded, tooMuch. None if no allowed amount is half of the whole."""
    allowed = _allowed(whole, policy)
    halves = [each for each in allowed if 2 * each <= whole < 3 * each] if allowed else [Fraction(whole // 2)]
    if not halves or halves[-1] < 1:
        return None
    found: dict[str, Fraction] = {"half": halves[-1]}
    for low, high in itertools.pairwise(allowed):
        if high - low >= 2:
            found |= {"uneven": low + (high - low) // 2, "rounded": high}
            break
    most = allowed[-1] if allowed else whole
    beyond = most + (allowed[-1] - allowed[-2] if len(allowed) > 1 else Fraction(1))
    return {**found, "tooMuch": beyond} if beyond <= whole else found


def quantity(number: Fraction | int) -> str:
    """Return a whole number as a quantity, such as 8Gi."""
    whole = int(number)
    return next((f"{whole // size}{unit}" for unit, size in _UNITS if whole and whole % size == 0), str(whole))


def _allowed(whole: Fraction, policy: Object) -> list[Fraction]:
    """Return the amounts that one claim can get, up to the whole; none if every amount is allowed."""
    if policy.get("validValues"):
        return sorted(amount(each) for each in policy["validValues"])
    limits: dict[str, Any] = policy.get("validRange") or {}
    if not limits.get("step"):
        return []
    least, step = amount(limits.get("min", 0)), amount(limits["step"])
    most = min(whole, amount(limits["max"])) if limits.get("max") else whole
    count = int((most - least) // step) if most >= least else -1
    return [least + number * step for number in range(min(count, 1000) + 1)]
