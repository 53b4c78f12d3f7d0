"""Profiles: named sets of requirements. A run judges by one, and reports nothing outside of it. For `selection`, the CLI and the plugin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from testbed.errors import UsageError, did_you_mean

SMOKE, CORE, FULL = "smoke", "core", "full"


@dataclass(frozen=True)
class RequirementProfile:
    """A name, what it is for, and the IDs of its requirements; no IDs mean all requirements."""

    name: str
    about: str
    ids: frozenset[str] = frozenset()

    def has(self, requirement: str) -> bool:
        """Return True if a requirement belongs to the profile."""
        return not self.ids or requirement in self.ids


def _ids(prefix: str, *numbers: int) -> list[str]:
    return [f"{prefix}-{number:03}" for number in numbers]


_SMOKE = (
    *_ids("REG", 1),
    *_ids("SLICE", 1, 2),
    *_ids("CLAIM", 1, 2, 3, 5, 8, 9, 10, 11, 12, 13, 15, 24, 25, 26),
    *_ids("SHARE", 1, 2, 4, 6, 7),
    *_ids("ADMIN", 1, 2, 10, 12, 13, 14, 16),
    *_ids("STATUS", 1, 6, 20),
    *_ids("PRESCHED", 1, 3, 4, 7),
    *_ids("SELECT", 1, 3, 20, 21),
)
# The budget is three minutes for the fake driver on two cores. Serial tests cost most, above all the disruptive ones.
_CORE = (
    *_SMOKE,
    *_ids("SLICE", 4, 10, 11, 12),
    *_ids("CLAIM", 28),
    *_ids("CONFIG", 1, 20),
    *_ids("PREP", 3, 4, 6, 7, 8),
    *_ids("PRESCHED", 9),
    *_ids("UNPREP", 3, 4),
    *_ids("RBAC", 1, 2, 3, 4, 5, 6),
    *_ids("LIFE", 2, 20, 22, 23),
    *_ids("UPGRADE", 2),
    *_ids("EXCL", 1, 2, 3, 6),
)

PROFILES: dict[str, RequirementProfile] = {
    SMOKE: RequirementProfile(
        SMOKE, "whether a driver works at all, in about a minute; never conformant", frozenset(_SMOKE)
    ),
    CORE: RequirementProfile(CORE, "what breaks users of a driver, in about three minutes", frozenset(_CORE)),
    FULL: RequirementProfile(FULL, "all requirements"),
}


def profile(name: str) -> RequirementProfile:
    """Return the profile of that name. UsageError if there is none."""
    try:
        return PROFILES[name]
    except KeyError as unknown:
        raise UsageError(f"there is no profile {name}", hint=did_you_mean(name, PROFILES)) from unknown


def select_profile(name: str | None, narrowed_by: Iterable[object]) -> str:
    """Return the name of the profile to judge by: the one that was named, else `full` if other options narrow the tests, else `core`."""
    if name is not None:
        return profile(name).name
    return FULL if any(narrowed_by) else CORE
