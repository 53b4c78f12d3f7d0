"""Ways to be wrong on purpose: drivers that a good test must catch. `__main__` imports this only when a fault is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from fake_driver.errors import ConfigurationError, suggestion
from fake_driver.mutants import MUTANTS, Mutation
from fake_driver.preparing.driver import CRASH_POINTS
from fake_driver.roles.node_driver import Parts


def rights_are_wrong(parts: Parts) -> Parts:
    """Not the driver is wrong, but what it may do: manifests/fake_driver grants too much, or too little, when it is told this word."""
    return parts


RIGHTS = (
    "may-not-read-claims",
    "may-read-secrets",
    "may-write-claims",
    "may-change-claims",
    "may-make-pods",
    "may-act-as-others",
    "may-edit-its-namespace",
    "may-allocate",
    "status-of-all-drivers",
    "status-on-all-nodes",
    "slices-of-all-nodes",
    "deletes-slices-of-all-nodes",
)


def _crash(point: str) -> Mutation:
    def crash(parts: Parts) -> Parts:
        once = parts.data / f"crashed-{point}"

        def at_crash_point(here: str) -> None:
            if here == point and not once.exists():
                once.touch()
                os._exit(137)  # the first process of a container cannot kill itself
            parts.at_crash_point(here)

        return replace(parts, at_crash_point=at_crash_point)

    crash.__doc__ = f"Ends like kill -9, the first time that it is {point.replace('-', ' ')}; a file in the data folder remembers it."
    return crash


ALL_MUTANTS: dict[str, Mutation] = (
    MUTANTS | dict.fromkeys(RIGHTS, rights_are_wrong) | {f"crash-{point}": _crash(point) for point in CRASH_POINTS}
)


def apply(words: Iterable[str], parts: Parts) -> Parts:
    """The parts with these faults in them."""
    for word in words:
        if word not in ALL_MUTANTS:
            raise ConfigurationError(f"there is no fault {word!r}; {suggestion(word, ALL_MUTANTS)}")
        parts = ALL_MUTANTS[word](parts)
    return parts
