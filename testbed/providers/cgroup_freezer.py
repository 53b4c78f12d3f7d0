"""On cgroup v1 a frozen process does not die, not even of SIGKILL, and runc freezes a container for a moment while it makes it.

Whoever is killed in that moment leaves it frozen for ever; so cgroups are thawed before, or when, their processes do not end.
On cgroup v2 the kernel lets frozen processes die.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

_HIERARCHY = Path("/sys/fs/cgroup/freezer")


def thaw(cgroup: str, hierarchy: Path = _HIERARCHY) -> list[Path]:
    """Thaw every cgroup whose path has a part of that name, and all below; returns those that were frozen."""
    thawed = []
    for state in sorted(hierarchy.rglob("freezer.state")):
        if cgroup in state.relative_to(hierarchy).parts:
            with contextlib.suppress(OSError):  # it went away by itself, or is not ours to write
                if state.read_text().strip() != "THAWED":
                    state.write_text("THAWED")
                    thawed.append(state.parent)
    return thawed
