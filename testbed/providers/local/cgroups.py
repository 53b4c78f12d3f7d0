"""The cgroups of a local cluster's nodes: /dra-testbed/TESTBED.N.SPACE/NODE in every controller, on cgroup v1 and v2.

A kubelet requires every controller that the host has. On cgroup v2, an ordinary host has most of them disabled at its root. They are
enabled there, which is the only change outside of /dra-testbed, and disabled again with the last testbed. An empty cgroup records which
ones, /dra-testbed/lent:CONTROLLER+CONTROLLER, so that the record survives a crash.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from testbed import process
from testbed.errors import TestbedError
from testbed.providers.disk_guard import deny_disks
from testbed.waiting import Budget, NotYet, eventually

ROOT = Path("/sys/fs/cgroup")
OURS = "dra-testbed"
_RECORD_PREFIX = "lent:"

_EMPTY = Budget("empty cgroups", 10, "a killed process leaves its cgroup only when its last system call returns")


def cgroup_of(testbed: str, octet: int, node: str = "") -> str:
    """Return the cgroup path of a testbed or of one of its nodes, in the form of the kubelet's cgroupRoot.

    The octet of the address range makes it unique. With the PID namespace, a host does not take its containers' cgroups for orphaned.
    """
    return f"/{OURS}/{testbed}.{octet}.{_space()}" + (f"/{node}" if node else "")


def testbed_of(path: str) -> str:
    """Return the testbed's name from a cgroup path."""
    return path.rsplit("/", 1)[1].split(".", maxsplit=1)[0]


def make(path: str) -> None:
    """Create the cgroup in every hierarchy of this host, with the controllers that a kubelet requires.

    Processes in it may not open disks, where the kernel can deny it.
    """
    try:
        with _lock():
            for hierarchy in _hierarchies():
                _enable_at_root(hierarchy)
                folder = hierarchy
                for part in path.strip("/").split("/"):
                    folder = folder / part
                    folder.mkdir(exist_ok=True)
                    _fill_cpuset(folder)
                    _enable_for_children(folder, _disabled(folder))
                deny_disks(folder)
    except OSError as refused:
        raise TestbedError(
            f"cannot create cgroup {path}: {refused.strerror} ({refused.filename})",
            hint="dra-testbed doctor; in a container: --privileged --cgroupns=host",
        ) from refused


def remove(path: str) -> None:
    """Remove the cgroup and all below it, in every hierarchy. With the last one, restore the host's root cgroup."""
    for hierarchy in _hierarchies():
        folder = hierarchy / path.strip("/")
        if folder.is_dir():
            gone = functools.partial(_remove_tree, folder)
            eventually(gone, f"cgroup {folder} to become empty", _EMPTY, longest_pause=0.05)
        with _lock(), contextlib.suppress(OSError):
            _restore_root(hierarchy)


def paths_of_testbeds() -> set[str]:
    """Return the cgroup paths of all testbeds of this PID namespace."""
    found = (child for hierarchy in _hierarchies() for child in (hierarchy / OURS).glob(f"*.{_space()}"))
    return {f"/{OURS}/{child.name}" for child in found if child.is_dir()}


def of_process(pid: int) -> set[str]:
    """Return the cgroup paths of the testbeds of this PID namespace that a process is in; none if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return set()
    return set(re.findall(rf"/{OURS}/[a-z0-9-]+\.\d+\.{_space()}\b", lines))


def _space() -> str:
    return "".join(filter(str.isdigit, process.pid_namespace()))


def _hierarchies() -> Iterator[Path]:
    if (ROOT / "cgroup.controllers").exists():
        yield ROOT
        return
    for folder in sorted(ROOT.iterdir()):
        if (folder / "cgroup.procs").exists() and not folder.is_symlink():
            yield folder


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    """Hold a kernel lock, so that no testbed restores the root cgroup while another one changes it."""
    number = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _disabled(folder: Path) -> set[str]:
    """Return the controllers that the folder has and its children lack; on cgroup v1 none."""
    controllers, subtree = folder / "cgroup.controllers", folder / "cgroup.subtree_control"
    if not subtree.exists():
        return set()
    return set(controllers.read_text().split()) - set(subtree.read_text().split())


def _enable_for_children(folder: Path, controllers: set[str]) -> None:
    """Enable these controllers for the folder's children."""
    if controllers:
        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{controller}" for controller in sorted(controllers)))


def _enable_at_root(hierarchy: Path) -> None:
    """Enable all controllers at the host's root. First record those that were disabled."""
    missing = _disabled(hierarchy)
    if missing:
        (hierarchy / OURS / f"{_RECORD_PREFIX}{'+'.join(sorted(missing))}").mkdir(parents=True, exist_ok=True)
        _enable_for_children(hierarchy, missing)


def _restore_root(hierarchy: Path) -> None:
    """If no testbed is left, disable the recorded controllers, except those that other cgroups use now, and remove our parent cgroup."""
    ours = hierarchy / OURS
    children = [child for child in ours.iterdir() if child.is_dir()]
    if any(not child.name.startswith(_RECORD_PREFIX) for child in children):
        return
    for controller in {name for child in children for name in child.name.removeprefix(_RECORD_PREFIX).split("+")}:
        for switches in (ours / "cgroup.subtree_control", hierarchy / "cgroup.subtree_control"):
            with contextlib.suppress(OSError):
                if switches.exists():
                    switches.write_text(f"-{controller}")
    for child in children:
        child.rmdir()
    ours.rmdir()


def _fill_cpuset(folder: Path) -> None:
    """Copy the parent's CPUs on cgroup v1, where a cpuset without CPUs admits no process."""
    for file in ("cpuset.cpus", "cpuset.mems"):
        mine = folder / file
        if mine.exists() and not (folder / "cgroup.controllers").exists() and not mine.read_text().strip():
            mine.write_text((folder.parent / file).read_text().strip())


def _remove_tree(folder: Path) -> None:
    try:
        for child in sorted((path for path in folder.rglob("*") if path.is_dir()), key=lambda path: -len(path.parts)):
            child.rmdir()
        folder.rmdir()
    except FileNotFoundError:
        return
    except OSError as busy:
        raise NotYet(f"{busy.filename}: {busy.strerror}") from busy
