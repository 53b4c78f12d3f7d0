"""Where a node's processes are, as this host sees them. An engine in a namespace of its own gives numbers that mean nothing here."""

from __future__ import annotations

import contextlib
from pathlib import Path


def first_process(node: str, proc: Path = Path("/proc")) -> int | None:
    """The first process of the container that is a node: number 1 in its own PID namespace, with the node's name in its /etc/hostname.

    A pod that is just being started is such a process for a moment, too, until it has a root of its own; but it is deeper inside.
    """
    found = {entry: depth for entry in proc.iterdir() if (depth := _depth(entry)) and _hostname(entry) == node}
    return int(min(found, key=found.__getitem__).name) if found else None


def _depth(entry: Path) -> int:
    """In how many PID namespaces below this one a process is the first one of its own; 0 for all others."""
    with contextlib.suppress(OSError):
        for line in (entry / "status").read_text().splitlines():
            if line.startswith("NSpid:"):
                numbers = line.split()[1:]
                return len(numbers) - 1 if numbers[-1] == "1" else 0
    return 0


def _hostname(entry: Path) -> str:
    with contextlib.suppress(OSError):
        return (entry / "root/etc/hostname").read_text().strip()
    return ""
