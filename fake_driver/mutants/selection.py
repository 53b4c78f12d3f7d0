"""All mutants of the driver by name, and `apply`, which builds one. `__main__` imports this only if the settings name a mutant."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from fake_driver.crash_points import CRASH_POINTS
from fake_driver.errors import ConfigurationError, suggestion
from fake_driver.mutants import (
    cdi,
    checkpoint,
    claims,
    dead,
    device_metadata,
    opaque_configuration,
    prepare,
    registration,
    releases,
    slice_changes,
    slice_features,
    slices,
    status_and_health,
    unprepare,
)
from fake_driver.mutants.leaks import containers
from fake_driver.preparing.driver import Driver
from fake_driver.roles.node_driver import Parts

Mutation = Callable[[Parts], Parts]


def _named(*mutants: Mutation | type[Driver]) -> dict[str, Mutation]:
    """Return the mutants by name. A subclass of Driver becomes the mutation that replaces the driver."""
    return {_name(each.__name__): _replace_driver(each) if isinstance(each, type) else each for each in mutants}


def _name(name: str) -> str:
    return re.sub(r"(?<=.)([A-Z])", r"-\1", name).lower().replace("_", "-")


def _replace_driver(driver: type[Driver]) -> Mutation:
    def mutation(parts: Parts) -> Parts:
        return replace(parts, driver=driver)

    mutation.__doc__ = driver.__doc__
    return mutation


MUTANTS: dict[str, Mutation] = _named(
    *registration.ALL,
    *dead.ALL,
    *slices.ALL,
    *slice_changes.ALL,
    *slice_features.ALL,
    *claims.ALL,
    *opaque_configuration.ALL,
    *prepare.ALL,
    *cdi.ALL,
    *device_metadata.ALL,
    *checkpoint.ALL,
    *releases.ALL,
    *unprepare.ALL,
    *status_and_health.ALL,
    *containers.ALL,
)


def wrong_permissions(parts: Parts) -> Parts:
    """The driver is correct, but manifests/fake_driver grants it too many permissions, or too few, if its faults contain this name."""
    return parts


PERMISSION_MUTANTS = (
    "may-not-read-claims",
    "may-not-publish",
    "may-read-secrets",
    "may-write-claims",
    "may-change-claims",
    "may-make-pods",
    "may-act-as-others",
    "may-change-nodes",
    "may-edit-its-namespace",
    "may-allocate",
    "status-of-all-drivers",
    "status-on-all-nodes",
    "slices-of-all-nodes",
    "deletes-slices-of-all-nodes",
    "policy-for-an-old-version",
    "policy-for-another-account",
)


def _crash(point: str) -> Mutation:
    def crash(parts: Parts) -> Parts:
        crashed = parts.data / f"crashed-{point}"

        def at_crash_point(here: str) -> None:
            if here == point and not crashed.exists():
                crashed.touch()
                os._exit(137)  # SIGKILL has no effect on the first process of a container
            parts.at_crash_point(here)

        return replace(parts, at_crash_point=at_crash_point)

    crash.__doc__ = (
        f"The process exits like after SIGKILL when it is {point.replace('-', ' ')} for the first time on the node."
    )
    return crash


ALL_MUTANTS: dict[str, Mutation] = (
    MUTANTS
    | dict.fromkeys(PERMISSION_MUTANTS, wrong_permissions)
    | {f"crash-{point}": _crash(point) for point in CRASH_POINTS}
)


def apply(names: Iterable[str], parts: Parts) -> Parts:
    """Return the parts with these mutants applied one after the other. Raise ConfigurationError for an unknown name."""
    for name in names:
        if name not in ALL_MUTANTS:
            raise ConfigurationError(f"faults: unknown mutant {name!r}; {suggestion(name, ALL_MUTANTS)}")
        parts = ALL_MUTANTS[name](parts)
    return parts
