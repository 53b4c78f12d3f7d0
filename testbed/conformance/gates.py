"""Which feature gates the requirements find on. Those that nobody can look at are taken as they usually are, and named. For `facts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from testbed.binaries.lock import lock_for, minors
from testbed.kube import features
from testbed.kube.client import Kube
from testbed.models.gates import GateInfo


@dataclass(frozen=True)
class Gates:
    """Those that are on, and those of them and of the others that nobody has seen."""

    on: frozenset[str]
    assumed: frozenset[str] = frozenset()


def gates_found(kube: Kube, version: str, usual: frozenset[str], *, tries: bool) -> Gates:
    """The server's own word where it may be read; else what the API shows, and for the rest what is `usual`.

    `tries` is whether more than looking is allowed.
    """
    said = features.gates(kube)
    if (
        said is not None
    ):  # a server may have forgotten a gate that all have for good: what it says nothing of is as usual
        return Gates(usual.difference(said).union(name for name in said if said[name]))
    shown = features.visible_gates(kube, version, tries=tries)
    on = usual.difference(shown).union(name for name in shown if shown[name])
    return Gates(on, _open_to_doubt(version).difference(shown))


def _open_to_doubt(version: str) -> frozenset[str]:
    """The gates that decide about requirements and could be either way, as one that this Kubernetes lacks or has locked could not."""
    known = _known_in(version)
    return frozenset(
        name for name in features.REQUIREMENT_GATES if not known or (name in known and not known[name].locked)
    )


def _known_in(version: str) -> Mapping[str, GateInfo]:
    """What is known of the gates of that Kubernetes; nothing of versions that are not locked here."""
    minor = ".".join(version.removeprefix("v").split(".")[:2])
    return lock_for(minor).gates if minor in minors() else {}
