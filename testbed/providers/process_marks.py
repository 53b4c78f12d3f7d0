"""The environment variables that mark our processes, by which `sweep` finds orphaned ones. For providers, `run` and `down`."""

from __future__ import annotations

import os
from pathlib import Path

from testbed import process
from testbed.process import ProcessId

MARK = "DRA_TESTBED_MARK"
SUITES_ON = "DRA_TESTBED_SUITES_ON"  # on the processes that test on a testbed, and on all their children


def mark_of(folder: Path) -> str:
    """Return the mark for a cluster's (or testbed's) folder. It names the PID namespace too.

    A host sees the processes of its containers, which may have testbeds with the same folder.
    """
    return f"{process.pid_namespace()} {folder}"


def marked_processes() -> dict[ProcessId, Path]:
    """Return every process of the testbeds of this PID namespace, with its cluster's folder."""
    here = f"{process.pid_namespace()} "
    marked = process.processes_with_variable(MARK)
    return {pid: Path(mark.removeprefix(here)) for pid, mark in marked.items() if mark.startswith(here)}


def suite_processes(testbed: Path) -> list[ProcessId]:
    """Return every process that tests on the testbed with that folder, except this one."""
    found = process.processes_with_variable(SUITES_ON)
    return [each for each, mark in found.items() if mark == mark_of(testbed) and each.pid != os.getpid()]
