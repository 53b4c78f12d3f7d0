"""The cgroups of a testbed's nodes: /dra-testbed/TESTBED.N.SPACE/NODE in every controller, on cgroup v1 and v2.

A kubelet insists on every controller that the host knows, and on cgroup v2 an ordinary host has most of them off at its root. They are
switched on there, which is the one thing that does not lie below /dra-testbed, and off again with the last testbed. What they are is
written down as an empty cgroup, /dra-testbed/lent:CONTROLLER+CONTROLLER, so that no crash forgets it.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
from collections.abc import Iterator
from pathlib import Path

from testbed import process
from testbed.errors import TestbedError
from testbed.waiting import Budget, NotYet, eventually

ROOT = Path("/sys/fs/cgroup")
OURS = "dra-testbed"
_LENT = "lent:"

_EMPTY = Budget("empty cgroups", 10, "the kernel lets go of a killed process only when its last system call returns")


def cgroup_of(testbed: str, octet: int, node: str = "") -> str:
    """The cgroup path of a testbed or of one of its nodes, as a kubelet wants it.

    The address range makes it unique; the PID namespace keeps a host and its containers from taking each other's for abandoned.
    """
    return f"/{OURS}/{testbed}.{octet}.{_space()}" + (f"/{node}" if node else "")


def testbed_of(path: str) -> str:
    """The testbed's name in a cgroup path."""
    return path.rsplit("/", 1)[1].split(".", maxsplit=1)[0]


def make(path: str) -> None:
    """Make the cgroup in every hierarchy of this host, usable for a kubelet at once."""
    try:
        with _alone():
            for hierarchy in _hierarchies():
                _borrow(hierarchy)
                folder = hierarchy
                for part in path.strip("/").split("/"):
                    folder = folder / part
                    folder.mkdir(exist_ok=True)
                    _fill_cpuset(folder)
                    _hand_down(folder, _off(folder))
    except OSError as refused:
        raise TestbedError(
            f"cannot make cgroup {path}: {refused.strerror} ({refused.filename})",
            hint="dra-testbed doctor; in a container: --privileged --cgroupns=host",
        ) from refused


def remove(path: str) -> None:
    """Remove the cgroup and all below it, in every hierarchy; and with the last one our common parent, and what the host lent."""
    for hierarchy in _hierarchies():
        folder = hierarchy / path.strip("/")
        if folder.is_dir():
            gone = functools.partial(_remove_tree, folder)
            eventually(gone, f"cgroup {folder} to become empty", _EMPTY, longest_pause=0.05)
        with _alone(), contextlib.suppress(OSError):
            _give_back(hierarchy)


def all_of_ours() -> set[str]:
    """The cgroup paths of all testbeds that were made from here."""
    found = (child for hierarchy in _hierarchies() for child in (hierarchy / OURS).glob(f"*.{_space()}"))
    return {f"/{OURS}/{child.name}" for child in found if child.is_dir()}


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
def _alone() -> Iterator[None]:
    """No other testbed's last cgroup goes while the first one of this comes. The lock is the kernel's: it ends with its holder."""
    number = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _off(folder: Path) -> set[str]:
    """On cgroup v2, the controllers that the folder has and its children do not."""
    controllers, subtree = folder / "cgroup.controllers", folder / "cgroup.subtree_control"
    if not subtree.exists():
        return set()
    return set(controllers.read_text().split()) - set(subtree.read_text().split())


def _hand_down(folder: Path, controllers: set[str]) -> None:
    """Let the children have these controllers."""
    if controllers:
        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{controller}" for controller in sorted(controllers)))


def _borrow(hierarchy: Path) -> None:
    """Switch on at the host's root what is off there; first it is written down."""
    missing = _off(hierarchy)
    if missing:
        (hierarchy / OURS / f"{_LENT}{'+'.join(sorted(missing))}").mkdir(parents=True, exist_ok=True)
        _hand_down(hierarchy, missing)


def _give_back(hierarchy: Path) -> None:
    """Where no testbed is left: switch off again what was off before us, unless somebody else uses it now, and remove our parent."""
    ours = hierarchy / OURS
    children = [child for child in ours.iterdir() if child.is_dir()]
    if any(not child.name.startswith(_LENT) for child in children):
        return
    for controller in {name for child in children for name in child.name.removeprefix(_LENT).split("+")}:
        for switches in (ours / "cgroup.subtree_control", hierarchy / "cgroup.subtree_control"):
            with contextlib.suppress(OSError):
                if switches.exists():
                    switches.write_text(f"-{controller}")
    for child in children:
        child.rmdir()
    ours.rmdir()


def _fill_cpuset(folder: Path) -> None:
    """On cgroup v1, a cpuset without CPUs admits no process."""
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
