"""What killed runs left on this host: found without any list, by the mark in the environment of processes and by the names of cgroups.

Only what carries our mark is touched, and nothing of a testbed that somebody still uses, whichever state folder it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed import process
from testbed.process import ProcessId
from testbed.providers.local import cgroups
from testbed.providers.local.namespaces import MARK


@dataclass(frozen=True)
class Leftovers:
    """Processes without a testbed, and cgroups without processes."""

    processes: dict[ProcessId, str]
    cgroups: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.processes or self.cgroups)

    def describe(self) -> list[str]:
        """One line for each kind of thing."""
        lines = [
            f"process {pid.pid} of {folder}"
            for pid, folder in sorted(self.processes.items(), key=lambda item: item[0].pid)
        ]
        return lines + [f"cgroup {path}" for path in self.cgroups]


def find(in_use: Callable[[Path], bool]) -> Leftovers:
    """Look at this host. `in_use` says whether a machine's folder belongs to a testbed that is to stay."""
    marked = process.processes_with(MARK)
    orphans = {pid: folder for pid, folder in marked.items() if not in_use(Path(folder))}
    living = {folder for pid, folder in marked.items() if pid not in orphans}
    idle = tuple(sorted(path for path in cgroups.all_of_ours() if not any(_owns(folder, path) for folder in living)))
    return Leftovers(orphans, idle)


def remove(found: Leftovers) -> None:
    """End the processes, then remove the cgroups; namespaces, mounts and links end with the processes."""
    process.kill_all(found.processes)
    for path in found.cgroups:
        cgroups.remove(path)


def _owns(machine_folder: str, cgroup: str) -> bool:
    """Whether the testbed of that machine may own the cgroup: the testbed's name is a part of the machine's path."""
    testbed = cgroup.rsplit("/", 1)[1].rsplit(".", 1)[0]
    return testbed in Path(machine_folder).parts
