"""Finds optional parts of DRA: classes of special devices with what tests request of them, and devices of other kinds. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import Any

from testbed.onboarding.discovery.facts import PublishedDevice
from testbed.onboarding.discovery.inference.classes import Classes, kinds
from testbed.vocabulary.driver.quantities import amount

_UNITS = [(f"{letter}i", 1024**power) for power, letter in reversed(list(enumerate("KMGTPE", 1)))]


def optional_section(classes: Classes, devices: Iterable[PublishedDevice]) -> dict[str, dict[str, Any]]:
    """Return the section `optional`. A class is left out if its devices lack something that its tests need."""
    every = list(devices)
    found: dict[str, dict[str, Any]] = {}
    for kind, name in classes.special.items():
        of_kind = [each for each in every if kind in kinds(each)]
        if kind == "taints" and not _has_both_effects(of_kind):
            continue
        details = _shared_capacity(of_kind) if kind == "capacity" else {}
        if details is not None:
            found[kind] = {"class": name, **details}
    return found


def others_section(classes: Classes) -> dict[str, list[str]] | None:
    """Return the section `devices.others`, which matches the devices that no ordinary class selects; None if no attributes do."""
    left, found = list(classes.others), dict[str, list[str]]()
    while left:
        patterns = {
            name: _patterns(name, classes.selected, left)
            for name in {name for each in left for name in each.attributes}
        }
        covered = {name: [each for each in left if _matches(each, name, patterns[name])] for name in patterns}
        # Of attributes that match equally many devices, the one with the fewest values is about kinds of devices.
        best = max(sorted(covered), key=lambda name: (len(covered[name]), -len(patterns[name])), default="")
        if not covered.get(best):
            return None
        found[best] = patterns[best]
        left = [each for each in left if each not in covered[best]]
    return found


def _patterns(name: str, ordinary: Iterable[PublishedDevice], others: Iterable[PublishedDevice]) -> list[str]:
    """Return the values that only other devices have; * if no ordinary device has the attribute."""
    own = {_text(each.attributes[name]) for each in ordinary if name in each.attributes}
    values = {_text(each.attributes[name]) for each in others if name in each.attributes} - own
    return sorted(values) if own else ["*"]


def _matches(device: PublishedDevice, name: str, patterns: Collection[str]) -> bool:
    return name in device.attributes and ("*" in patterns or _text(device.attributes[name]) in patterns)


def _has_both_effects(devices: Iterable[PublishedDevice]) -> bool:
    effects = {taint["effect"] for each in devices for taint in each.content.get("taints") or ()}
    return {"NoSchedule", "NoExecute"} <= effects


def _shared_capacity(devices: Collection[PublishedDevice]) -> dict[str, Any] | None:
    """Return the capacity that claims share, and an amount that fits into each device twice; None if there is none."""
    names = set.intersection(*(set(each.capacity) for each in devices)) if devices else set()
    for name in sorted(names, key=lambda each: ("memory" not in each, each)):
        half = min(amount(each.capacity[name]) for each in devices) // 2
        if half >= 1:
            return {"name": name, "half": quantity(half)}
    return None


def quantity(number: Fraction | int) -> str:
    """Return a whole number as a quantity, such as 8Gi."""
    whole = int(number)
    return next((f"{whole // size}{unit}" for unit, size in _UNITS if whole and whole % size == 0), str(whole))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
