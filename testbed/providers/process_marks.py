"""The mark that our processes carry in their environment, so that a sweep finds them without a list. For every provider that starts any."""

from __future__ import annotations

import os
from pathlib import Path

from testbed import process
from testbed.process import ProcessId

MARK = "DRA_TESTBED_MARK"
SUITES_ON = "DRA_TESTBED_SUITES_ON"  # carried by what judges on a testbed, and by all that it starts


def mark_of(folder: Path) -> str:
    """What our processes carry: the folder of the cluster (or testbed), and the PID namespace of whoever made it.

    A host sees the processes of its containers too; testbeds in there are none of its business.
    """
    return f"{process.pid_namespace()} {folder}"


def marked_processes() -> dict[ProcessId, Path]:
    """Every process of a testbed that was made from here, with its cluster's folder."""
    here = f"{process.pid_namespace()} "
    marked = process.processes_with_variable(MARK)
    return {pid: Path(mark.removeprefix(here)) for pid, mark in marked.items() if mark.startswith(here)}


def suite_processes(testbed: Path) -> list[ProcessId]:
    """Every process that judges on the testbed with that folder, except for ourselves."""
    mine = os.getpid()
    return [
        pid
        for pid, mark in process.processes_with_variable(SUITES_ON).items()
        if mark == mark_of(testbed) and pid.pid != mine
    ]
