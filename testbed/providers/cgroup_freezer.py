"""Thaws frozen cgroups on cgroup v1, where a frozen process does not end even on SIGKILL. For providers that kill containers.

runc freezes a container's cgroup for a moment while it creates the container. If runc is killed in that moment, the cgroup stays frozen. On
cgroup v2 the kernel kills frozen processes too.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

_HIERARCHY = Path("/sys/fs/cgroup/freezer")


def thaw(cgroup: str, hierarchy: Path = _HIERARCHY) -> list[Path]:
    """Thaw every cgroup whose path has a component of that name, and all below it; return those that were frozen."""
    thawed = []
    for state in sorted(hierarchy.rglob("freezer.state")):
        if cgroup in state.relative_to(hierarchy).parts:
            with contextlib.suppress(OSError):  # it was removed meanwhile, or cannot be written
                if state.read_text().strip() != "THAWED":
                    state.write_text("THAWED")
                    thawed.append(state.parent)
    return thawed
