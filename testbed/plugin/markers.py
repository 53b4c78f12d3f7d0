"""pytest markers for each requirement: requirement(id), and its tier and level for -m. Used by the rest of the plugin."""

from __future__ import annotations

import pytest

from testbed.conformance import Level, Requirement, Tier
from testbed.conformance.requirement import requirement_of

_KEY = pytest.StashKey[Requirement]()
_WORDS = {
    "requirement(id)": "the requirement that the test checks",
    **{tier.value: f"requirements of tier {tier.value}" for tier in Tier},
    **{level.value.lower(): f"requirements that a driver {level.value} meet" for level in Level},
}


def add_markers(item: pytest.Item, function: object) -> None:
    """Add the markers of a test function's requirement to its item. UsageError if the test is a method."""
    found = requirement_of(function)
    if found is None:
        return
    if getattr(item, "cls", None):
        raise pytest.UsageError(f"{item.nodeid}: a requirement must be checked by a function, not by a method")
    _register(item.config)
    item.stash[_KEY] = found
    for marker in (pytest.mark.requirement(found.id), found.tier.value, found.level.value.lower()):
        item.add_marker(marker)


def requirement_of_item(item: pytest.Item) -> Requirement | None:
    """Return the requirement that a test checks, if any."""
    return item.stash.get(_KEY, None)


def _register(config: pytest.Config) -> None:
    known = {line.partition(":")[0] for line in config.getini("markers")}
    for word, meaning in _WORDS.items():
        if word not in known:
            config.addinivalue_line("markers", f"{word}: {meaning}")
