"""Where a node's processes are, as this host sees them. An engine in a namespace of its own gives numbers that mean nothing here."""

from __future__ import annotations

import contextlib
from pathlib import Path


def first_process(node: str, proc: Path = Path("/proc")) -> int | None:
    """The first process of the container that is a node: number 1 in its own PID namespace, with the node's name in its /etc/hostname."""
    for entry in proc.iterdir():
        if entry.name.isdigit() and _is_first(entry) and _hostname(entry) == node:
            return int(entry.name)
    return None


def _is_first(entry: Path) -> bool:
    with contextlib.suppress(OSError):
        for line in (entry / "status").read_text().splitlines():
            if line.startswith("NSpid:"):
                numbers = line.split()[1:]
                return len(numbers) > 1 and numbers[-1] == "1"
    return False


def _hostname(entry: Path) -> str:
    with contextlib.suppress(OSError):
        return (entry / "root/etc/hostname").read_text().strip()
    return ""
