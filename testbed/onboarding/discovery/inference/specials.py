"""Finds optional parts of DRA: classes of special devices with what tests request of them, and devices of other kinds. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from testbed.drivers.published.slices import Pool, pools
from testbed.kube.client import Object
from testbed.onboarding.discovery.facts import PublishedDevice, by_node
from testbed.onboarding.discovery.inference.classes import Classes, kinds
from testbed.onboarding.discovery.inference.shares import shared_capacity
from testbed.vocabulary.driver.optional_devices import counter_groups


def optional_section(
    classes: Classes, devices: Collection[PublishedDevice], slices: Iterable[Object] = ()
) -> dict[str, dict[str, Any]]:
    """Return the section `optional`. A class is left out if its devices lack something that its tests need."""
    found: dict[str, dict[str, Any]] = {}
    for kind, name in classes.special.items():
        of_kind = [each for each in devices if kind in kinds(each)]
        details = _details(kind, of_kind, slices)
        if details is not None:
            found[kind] = {"class": name, **details}
    return found


def _details(kind: str, devices: Collection[PublishedDevice], slices: Iterable[Object]) -> dict[str, Any] | None:
    """Return what a section says beside its class; None if tests cannot use these devices."""
    if kind == "taints":
        return {} if _has_both_effects(devices) else None
    if kind == "partitions":
        return _partitions(pools(slices, next(each.driver for each in devices)), next(each.driver for each in devices))
    if kind == "capacity":
        amounts = shared_capacity(devices)
        count = min(len(of_node) for of_node in by_node(devices).values())
        return amounts and {**({"perNode": count} if count > 1 else {}), **amounts}
    return {}


def _partitions(found: Collection[Pool], driver: str) -> dict[str, int]:
    """Return how many whole devices and partitions each node has, at least."""
    counts: dict[str, list[int]] = {}
    for pool in found:
        groups = list(counter_groups(pool, driver))
        whole = sum(1 for each in groups if each.whole)
        for node in pool.nodes:
            old = counts.get(node, [0, 0])
            counts[node] = [old[0] + whole, old[1] + sum(len(each.parts) for each in groups) - whole]
    return (
        {name: min(each[place] for each in counts.values()) for place, name in enumerate(("whole", "parts"))}
        if counts
        else {}
    )


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
        best = max(
            sorted(covered),
            key=lambda name: (len(covered[name]), "*" in patterns[name], -len(patterns[name])),
            default="",
        )
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


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
