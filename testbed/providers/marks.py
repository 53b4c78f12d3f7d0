"""The mark that our processes carry in their environment, so that a sweep finds them without a list. For every provider that starts any."""

from __future__ import annotations

from pathlib import Path

from testbed import process
from testbed.process import ProcessId

MARK = "DRA_TESTBED_MARK"


def mark_of(cluster: Path) -> str:
    """What our processes carry: the cluster's folder, and the PID namespace of whoever made it.

    A host sees the processes of its containers too; testbeds in there are none of its business.
    """
    return f"{process.pid_space()} {cluster}"


def marked_processes() -> dict[ProcessId, Path]:
    """Every process of a testbed that was made from here, with its cluster's folder."""
    here = f"{process.pid_space()} "
    marked = process.processes_with(MARK)
    return {pid: Path(mark.removeprefix(here)) for pid, mark in marked.items() if mark.startswith(here)}
