"""What killed runs left on this host: found without any list, by the mark in the environment of processes and by the names of cgroups.

Only what carries our mark is touched, and nothing of a testbed that somebody still uses, whichever state folder it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath

from testbed import process
from testbed.process import ProcessId
from testbed.providers import cgroup_freezer
from testbed.providers.local import cgroups, network
from testbed.providers.process_marks import marked_processes


@dataclass(frozen=True)
class Leftovers:
    """Processes and links without a testbed, and cgroups without processes."""

    processes: dict[ProcessId, str]
    links: dict[str, Path]
    cgroups: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.processes or self.links or self.cgroups)

    def describe(self) -> list[str]:
        """One line for each kind of thing."""
        lines = [
            f"process {pid.pid} of {folder}"
            for pid, folder in sorted(self.processes.items(), key=lambda item: item[0].pid)
        ]
        lines += [f"link {name} of {folder}" for name, folder in sorted(self.links.items())]
        return lines + [f"cgroup {path}" for path in self.cgroups]


def find(in_use: Callable[[Path], bool]) -> Leftovers:
    """Look at this host. `in_use` says whether a cluster's folder belongs to a testbed that is to stay."""
    marked = marked_processes()
    links = network.links_of_testbeds()
    stay = {folder: in_use(folder) for folder in {*marked.values(), *links.values()}}
    orphans = {pid: str(folder) for pid, folder in marked.items() if not stay[folder]}
    kept = {folder.parent.name for folder, stays in stay.items() if stays}
    idle = tuple(sorted(path for path in cgroups.all_of_ours() if cgroups.testbed_of(path) not in kept))
    return Leftovers(orphans, {name: folder for name, folder in links.items() if not stay[folder]}, idle)


def remove(found: Leftovers) -> None:
    """End the processes, then remove links and cgroups; namespaces and mounts end with the processes."""
    for path in found.cgroups:
        cgroup_freezer.thaw(PurePath(path).name)
    process.kill_all(found.processes)
    for folder in found.links.values():
        network.remove_links_of(folder)
    for path in found.cgroups:
        cgroups.remove(path)
