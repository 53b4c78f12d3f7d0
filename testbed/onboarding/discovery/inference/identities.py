"""Finds attributes that tell a driver's devices apart, and attributes and capacities that tests can request. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from testbed.onboarding.discovery.facts import PublishedDevice, by_node

# Of several possible names, those that contain one of these words come first.
_PREFERRED_IDENTITIES = ("uuid", "serial", "id", "address", "mac")
_PREFERRED_ATTRIBUTES = ("model", "product", "type", "kind")
_PREFERRED_CAPACITIES = ("memory",)
_PREFERRED_MATCHES = ("pcieRoot", "numa", "type", "kind", "model")


@dataclass(frozen=True)
class IdentityCandidate:
    """An attribute whose value only one device has, among those of a node or of the cluster."""

    attribute: str
    scope: str


@dataclass(frozen=True)
class Examples:
    """Names that tests can request; '' if there is none."""

    attribute: str = ""
    capacity: str = ""
    match: str = ""


def identity_candidates(devices: Collection[PublishedDevice]) -> list[IdentityCandidate]:
    """Return the attributes with which all devices can be told apart, the best first."""
    names = _of_all(each.attributes for each in devices)
    found = [IdentityCandidate(name, scope) for name in names if (scope := _scope(name, devices))]
    return sorted(found, key=lambda each: (_is_number(each, devices), _rank(each.attribute, _PREFERRED_IDENTITIES)))


def examples(devices: Collection[PublishedDevice]) -> Examples:
    """Return names that all devices have. The value of `match` is the same for two devices of each node."""
    attributes = _of_all(each.attributes for each in devices)
    capacities = _of_all(each.capacity for each in devices)
    texts = [name for name in attributes if all(isinstance(each.attributes[name], str) for each in devices)]
    shared = [name for name in texts if not _scope(name, devices)] or texts
    matching = [name for name in attributes if all(_is_shared(name, of_node) for of_node in by_node(devices).values())]
    separating = [name for name in matching if any(_separates(name, of_node) for of_node in by_node(devices).values())]
    return Examples(
        preferred(shared, _PREFERRED_ATTRIBUTES),
        preferred(capacities, _PREFERRED_CAPACITIES),
        preferred(separating or matching, _PREFERRED_MATCHES),
    )


def _scope(name: str, devices: Collection[PublishedDevice]) -> str:
    """Return within what each device has another value: cluster, node or ''."""
    if len(devices) < 2:
        return ""
    if _differ(each.attributes[name] for each in devices):
        return "cluster"
    per_node = by_node(devices).values()
    unique = all(_differ(each.attributes[name] for each in of_node) for of_node in per_node)
    return "node" if unique and any(len(of_node) > 1 for of_node in per_node) else ""


def _differ(values: Iterable[Any]) -> bool:
    return all(count == 1 for count in Counter(map(str, values)).values())


def _is_shared(name: str, devices: Collection[PublishedDevice]) -> bool:
    return max(Counter(each.attributes[name] for each in devices).values()) > 1


def _separates(name: str, devices: Collection[PublishedDevice]) -> bool:
    return len({each.attributes[name] for each in devices}) > 1


def _is_number(candidate: IdentityCandidate, devices: Collection[PublishedDevice]) -> bool:
    return not all(isinstance(each.attributes[candidate.attribute], str) for each in devices)


def _of_all(values: Iterable[Collection[str]]) -> list[str]:
    """Return the names that all devices have."""
    every = [set(each) for each in values]
    return sorted(set.intersection(*every)) if every else []


def preferred(names: Collection[str], words: Collection[str]) -> str:
    """Return the name that contains the first of these words, or the first name in the alphabet; '' if there is none."""
    return min(names, key=lambda name: (_rank(name, words), name), default="")


def _rank(name: str, words: Collection[str]) -> int:
    short = name.rpartition("/")[2].lower()
    return next((place for place, word in enumerate(words) if word.lower() in short), len(words))
