"""Finds and removes orphaned processes, links and cgroups of killed runs on this host. Called by the provider's `sweep`.

They are found by the mark in the environment of processes, the alias of links and the names of cgroups. Nothing else is touched, and
nothing of a testbed in use, whichever state folder it belongs to.
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
class Orphans:
    """Processes, links and cgroups that belong to no testbed."""

    processes: dict[ProcessId, str]
    links: dict[str, Path]
    cgroups: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.processes or self.links or self.cgroups)

    def describe(self) -> list[str]:
        """Return a line for each process, link and cgroup."""
        lines = [
            f"process {pid.pid} of {folder}"
            for pid, folder in sorted(self.processes.items(), key=lambda item: item[0].pid)
        ]
        lines += [f"link {name} of {folder}" for name, folder in sorted(self.links.items())]
        return lines + [f"cgroup {path}" for path in self.cgroups]


def find(in_use: Callable[[Path], bool]) -> Orphans:
    """Return the orphans of this host. `in_use` says whether a cluster's folder belongs to a testbed in use."""
    marked = marked_processes()
    links = network.links_of_testbeds()
    used = {folder: in_use(folder) for folder in {*marked.values(), *links.values()}}
    used_names = {folder.parent.name for folder, is_used in used.items() if is_used}
    return Orphans(
        {pid: str(folder) for pid, folder in marked.items() if not used[folder]},
        {name: folder for name, folder in links.items() if not used[folder]},
        tuple(sorted(path for path in cgroups.paths_of_testbeds() if cgroups.testbed_of(path) not in used_names)),
    )


def remove(found: Orphans) -> None:
    """Kill the processes, then remove links and cgroups. Namespaces and mounts disappear with the processes."""
    for path in found.cgroups:
        cgroup_freezer.thaw(PurePath(path).name)
    process.kill_all(found.processes)
    for folder in found.links.values():
        network.remove_links_of(folder)
    for path in found.cgroups:
        cgroups.remove(path)
