"""The memory of a testbed: the proportional set size (PSS) of all processes on its nodes. Used by up.py."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def pss_mib(inits: Iterable[int]) -> float:
    """Return the PSS in MiB of all processes in the PID namespaces of these init processes."""
    namespaces = {str(Path(f"/proc/{init}/ns/pid").readlink()) for init in inits}
    processes = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and _namespace(entry) in namespaces]
    return sum(map(_pss, processes)) / 1024


def _namespace(entry: Path) -> str:
    try:
        return str((entry / "ns/pid").readlink())
    except OSError:
        return ""


def _pss(entry: Path) -> int:
    try:
        lines = (entry / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
