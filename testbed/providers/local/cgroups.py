"""The cgroups of a testbed's nodes: /dra-testbed/TESTBED.N.SPACE/NODE in every controller, on cgroup v1 and v2."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path

from testbed import process
from testbed.errors import TestbedError
from testbed.waiting import Budget, NotYet, eventually

ROOT = Path("/sys/fs/cgroup")
OURS = "dra-testbed"

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
        for hierarchy in _hierarchies():
            folder = hierarchy
            for part in path.strip("/").split("/"):
                _hand_down(folder)
                folder = folder / part
                folder.mkdir(exist_ok=True)
                _fill_cpuset(folder)
            _hand_down(folder)
    except OSError as refused:
        raise TestbedError(
            f"cannot make cgroup {path}: {refused.strerror} ({refused.filename})",
            hint="dra-testbed doctor; in a container: --privileged --cgroupns=host",
        ) from refused


def remove(path: str) -> None:
    """Remove the cgroup and all below it, in every hierarchy; and our common parent when it is empty."""
    for hierarchy in _hierarchies():
        folder = hierarchy / path.strip("/")
        if folder.is_dir():
            gone = functools.partial(_remove_tree, folder)
            eventually(gone, f"cgroup {folder} to become empty", _EMPTY, longest_pause=0.05)
        with contextlib.suppress(OSError):
            (hierarchy / OURS).rmdir()


def all_of_ours() -> set[str]:
    """The cgroup paths of all testbeds that were made from here."""
    found = (child for hierarchy in _hierarchies() for child in (hierarchy / OURS).glob(f"*.{_space()}"))
    return {f"/{OURS}/{child.name}" for child in found if child.is_dir()}


def _space() -> str:
    return "".join(filter(str.isdigit, process.pid_space()))


def _hierarchies() -> Iterator[Path]:
    if (ROOT / "cgroup.controllers").exists():
        yield ROOT
        return
    for folder in sorted(ROOT.iterdir()):
        if (folder / "cgroup.procs").exists() and not folder.is_symlink():
            yield folder


def _hand_down(folder: Path) -> None:
    """On cgroup v2, let the children have every controller: a kubelet insists on all that the host knows."""
    controllers, subtree = folder / "cgroup.controllers", folder / "cgroup.subtree_control"
    if not subtree.exists():
        return
    missing = set(controllers.read_text().split()) - set(subtree.read_text().split())
    if missing:
        subtree.write_text(" ".join(f"+{controller}" for controller in sorted(missing)))


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
