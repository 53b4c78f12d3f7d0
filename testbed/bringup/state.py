"""The state folder: one folder per testbed, with a record of what it is, how far it came and who is working on it.

STATE/NAME/testbed.json   the record
STATE/NAME/kubeconfig     a link to the administrator's kubeconfig
STATE/NAME/cluster/       the provider's own
STATE/.failed/NAME/       logs of the last `up` of that name that failed
STATE/.locks/NAME         held by whoever changes the testbed
"""

from __future__ import annotations

import contextlib
import enum
import json
import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import filelock

from testbed import folders, process
from testbed.errors import TestbedError, UsageError, did_you_mean
from testbed.kube.ownership import Owner
from testbed.models.names import check_name, is_testbed_name
from testbed.process import ProcessId

KILLED = "whoever made it was killed; dra-testbed sweep removes it"  # of an abandoned testbed
_KEPT_FAILURES = 5  # runs have names of their own, so failed ones would pile up


class Phase(enum.StrEnum):
    """How far a testbed came."""

    CREATING = "creating"
    READY = "ready"
    DELETING = "deleting"


@dataclass(frozen=True)
class Record:
    """testbed.json: everything that another process must know about a testbed."""

    name: str
    provider: str
    phase: Phase
    owner_pid: int
    owner_started: int
    pid_space: str
    ephemeral: bool
    config: dict[str, Any]
    identity: str = ""

    @property
    def owner(self) -> Owner:
        """The testbed as the objects that it makes in a cluster name it."""
        host, folder = socket.gethostname(), str(folder_of(self.name))
        return Owner(
            self.name,
            self.identity,
            host,
            process.boot_id(),
            self.pid_space,
            self.owner_pid,
            self.owner_started,
            folder,
        )

    @property
    def owner_alive(self) -> bool:
        """Whether the process that made (or is making) it still runs."""
        return ProcessId(self.owner_pid, self.owner_started).alive

    @property
    def abandoned(self) -> bool:
        """Whether nobody will ever finish or remove it: its maker died in the middle, or it was made for a run that died."""
        ours_to_say = (
            self.pid_space == process.pid_namespace()
        )  # a container's processes cannot be judged from outside it
        return ours_to_say and not self.owner_alive and (self.ephemeral or self.phase is not Phase.READY)


class TestbedLocked(UsageError):
    """Somebody else is changing that testbed right now."""


def folder_of(name: str) -> Path:
    """The folder of a testbed, there or not. Only a plain name has one: what is in it will be removed some day."""
    return folders.state() / check_name(name)


def cluster_folder(name: str) -> Path:
    """The provider's part of it."""
    return folder_of(name) / "cluster"


def failed_logs(name: str) -> Path:
    """Where the logs of a failed `up` are kept."""
    return folders.state() / ".failed" / check_name(name)


def read(name: str) -> Record | None:
    """The record of a testbed, or None where there is none."""
    return read_at(folder_of(name))


def read_at(folder: Path) -> Record | None:
    """The record in that folder. A folder without one was not made by us; a damaged one is nobody's to guess about."""
    file = folder / "testbed.json"
    try:
        content = json.loads(file.read_text())
        return Record(**{**content, "phase": Phase(content["phase"])})
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError) as damaged:
        if isinstance(damaged, PermissionError):
            whose = (
                f"the state folder belongs to {folders.owner_of(folder.parent)}: use sudo, or another DRA_TESTBED_STATE"
            )
            raise TestbedError(f"cannot read {file}: {damaged.strerror}", hint=whose) from damaged
        hint = (
            "another version of dra-testbed may have written it; otherwise remove its processes and the folder by hand"
        )
        raise TestbedError(f"cannot read {file}: {damaged}", hint=hint) from damaged


def write(record: Record) -> None:
    """Write the record so that a reader sees the old or the new one, never half of it, and never a folder without one."""
    folder = folder_of(record.name)
    if read_at(folder) is None:
        _make(folder, record)
        return
    temporary = folder / f".testbed.json.{os.getpid()}"
    temporary.write_text(_as_text(record))
    temporary.replace(folder / "testbed.json")


def discard(name: str) -> None:
    """Remove the folder of a testbed. It first gets a name of its own, so that after a kill in the middle nobody takes it for one."""
    dying = _private("old")
    with contextlib.suppress(FileNotFoundError):
        folder_of(name).rename(dying)
    shutil.rmtree(dying, ignore_errors=True)


def discard_partial_folders() -> None:
    """Remove what a kill in the middle of making or removing a folder left."""
    for path in folders.state().glob(".*-*-*"):
        kind, _, owner = path.name.partition("-")
        pid, _, started = owner.partition("-")
        if (
            kind in (".new", ".old")
            and pid.isdigit()
            and started.isdigit()
            and not ProcessId(int(pid), int(started)).alive
        ):
            shutil.rmtree(path, ignore_errors=True)


def names() -> list[str]:
    """Every testbed that has a folder; other folders are not looked at. PermissionError where we may not know."""
    return sorted(path.name for path in folders.state().iterdir() if is_testbed_name(path.name) and _has_record(path))


def _has_record(folder: Path) -> bool:
    """Not `is_file`, for which from Python 3.14 on a folder that we may not search holds nothing."""
    try:
        return stat.S_ISREG((folder / "testbed.json").stat().st_mode)
    except PermissionError:
        raise
    except OSError:
        return False


def require(name: str) -> Record:
    """The record of a testbed that must be there."""
    record = read(name)
    if record is None:
        raise UsageError(
            f"there is no testbed {name}", hint=did_you_mean(name, names()) or f"dra-testbed up --name {name}"
        )
    return record


def this_process() -> ProcessId:
    """This process, as an owner."""
    mine = ProcessId.of(os.getpid())
    assert mine is not None  # noqa: S101 - we are alive
    return mine


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Be the only one who changes that testbed. The lock ends with its holder, however that one ends."""
    locks = _locks()
    lock = filelock.FileLock(locks / check_name(name), timeout=0)
    try:
        with _gate(locks):
            lock.acquire()
    except filelock.Timeout as held:
        raise TestbedLocked(
            f"another dra-testbed is changing testbed {name} right now",
            hint="wait for it, or choose another --name",
        ) from held
    try:
        yield
    finally:
        with _gate(locks):
            if not folder_of(name).exists():  # runs have names of their own, so their locks would pile up
                Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()


def discard_stale_locks() -> None:
    """Remove the locks that nobody holds and that belong to no testbed: a kill can leave one."""
    for path in _locks().iterdir():
        if is_testbed_name(path.name):
            with contextlib.suppress(TestbedLocked), locked(path.name):
                pass  # whoever is done removes a lock that is of no more use


def keep_logs(name: str, collect: Callable[[Path], None]) -> Path:
    """Keep the logs of a failed `up` where the undoing does not remove them; returns where."""
    target = failed_logs(name)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(mode=0o700, parents=True)
    older = sorted(target.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for each in older[_KEPT_FAILURES:]:
        shutil.rmtree(each, ignore_errors=True)
    collect(target)
    return target


def _locks() -> Path:
    locks = folders.state() / ".locks"
    locks.mkdir(mode=0o700, exist_ok=True)
    return locks


def _gate(locks: Path) -> filelock.BaseFileLock:
    """Held for the moment in which a lock is taken or removed, so that nobody takes a file that is being removed."""
    return filelock.FileLock(locks / ".gate")


def _make(folder: Path, record: Record) -> None:
    new = _private("new")
    try:
        new.mkdir(mode=0o700)
        (new / "testbed.json").write_text(_as_text(record))
        new.rename(folder)
    except OSError as taken:
        shutil.rmtree(new, ignore_errors=True)
        if not folder.exists():
            raise
        raise UsageError(
            f"{folder} is there and is no testbed", hint="choose another --name, or another DRA_TESTBED_STATE"
        ) from taken


def _private(kind: str) -> Path:
    return folders.state() / f".{kind}-{this_process().pid}-{this_process().started}"


def _as_text(record: Record) -> str:
    return json.dumps(asdict(record), indent=1)
