"""Find out which feature gates of a cluster are on. Gates that cannot be observed are assumed to have their defaults. For `facts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from testbed.binaries.lock import lock_for, minors
from testbed.kube import features
from testbed.kube.client import Kube
from testbed.models.gates import GateInfo


@dataclass(frozen=True)
class Gates:
    """The gates that are on, and the gates, on or off, whose state is only assumed."""

    on: frozenset[str]
    assumed: frozenset[str] = frozenset()


def find_gates(kube: Kube, version: str, defaults: frozenset[str], *, may_create: bool) -> Gates:
    """Return the gates from the server's metrics if they can be read, otherwise from what the API shows, with `defaults` for the rest.

    `may_create` allows to create objects to find out more.
    """
    reported = features.gates(kube)
    if reported is not None:  # a server may no longer report a gate that is GA: then it has its default
        return Gates(defaults.difference(reported).union(name for name in reported if reported[name]))
    visible = features.visible_gates(kube, version, dry_runs=may_create)
    on = defaults.difference(visible).union(name for name in visible if visible[name])
    return Gates(on, _uncertain_gates(version).difference(visible))


def _uncertain_gates(version: str) -> frozenset[str]:
    """Return the gates that requirements depend on and that could be on or off in that version."""
    known = _known_gates(version)
    return frozenset(
        name for name in features.REQUIREMENT_GATES if not known or (name in known and not known[name].locked)
    )


def _known_gates(version: str) -> Mapping[str, GateInfo]:
    """Return the gates of that version of Kubernetes; none if there is no lock file for it."""
    minor = ".".join(version.removeprefix("v").split(".")[:2])
    return lock_for(minor).gates if minor in minors() else {}
