"""How much memory a testbed takes: the proportional set size of every process in its machines, containers included."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def pss_mib(inits: Iterable[int]) -> float:
    """MiB of all processes that live in the PID namespaces of these first processes."""
    spaces = {str(Path(f"/proc/{init}/ns/pid").readlink()) for init in inits}
    return (
        sum(_pss(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _space(entry) in spaces) / 1024
    )


def _space(entry: Path) -> str:
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
