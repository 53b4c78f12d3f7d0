"""Finds a kind node's processes on this host. The engine's process IDs are not used, as it may run in another PID namespace."""

from __future__ import annotations

import contextlib
from pathlib import Path


def first_process(node: str, proc: Path = Path("/proc")) -> int | None:
    """Return the first process of a node's container: process 1 of its PID namespace, with the node's name in its /etc/hostname.

    A pod that is being started matches too until it has its own root, but its PID namespace is nested deeper.
    """
    found = {entry: depth for entry in proc.iterdir() if (depth := _depth(entry)) and _hostname(entry) == node}
    return int(min(found, key=found.__getitem__).name) if found else None


def _depth(entry: Path) -> int:
    """Return how many PID namespaces deep a process is that is process 1 of its namespace; 0 for all other processes."""
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
