"""The state folder: one folder per testbed, with a record of its configuration, its phase and the process that made it.

STATE/NAME/testbed.json   the record
STATE/NAME/kubeconfig     a link to the administrator's kubeconfig
STATE/NAME/cluster/       the provider's files
STATE/NAME/releases.json  the objects of both releases of the driver, if it has a previous one (testbed.drivers.releases)
STATE/.failed/NAME/       logs of the last `up` of that name that failed
STATE/.locks/NAME         the lock of the process that changes the testbed
"""

from __future__ import annotations

import contextlib
import enum
import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import filelock

from testbed import folders, process, state_files
from testbed.errors import TestbedError, UsageError, did_you_mean
from testbed.kube.ownership import Owner
from testbed.models.names import check_name, is_testbed_name
from testbed.process import ProcessId
from testbed.state_files import typed

KILLED = "the process that made it was killed; dra-testbed sweep removes it"  # of an abandoned testbed
_REQUIRED = {
    "name": str, "provider": str, "phase": str, "owner_pid": int, "owner_started": int, "pid_space": str, "ephemeral": bool, "config": dict,
}  # fmt: skip
_KEPT_FAILURES = 5  # each run has its own name, so the logs of failed ones would accumulate


class Phase(enum.StrEnum):
    """The phase of a testbed."""

    CREATING = "creating"
    READY = "ready"
    DELETING = "deleting"


@dataclass(frozen=True)
class Record:
    """The content of testbed.json: everything that another process needs to know about a testbed."""

    name: str
    provider: str
    phase: Phase
    owner_pid: int
    owner_started: int
    pid_space: str
    ephemeral: bool
    config: dict[str, Any]
    identity: str = ""
    drivers: tuple[str, ...] = ()  # the drivers that `up` installs: their ResourceSlices have no labels of ours
    kept_nodes: dict[str, list[str]] = field(
        default_factory=dict
    )  # where drivers must run, from before their installation

    @property
    def owner(self) -> Owner:
        """The testbed as it is named by the objects that it creates in a cluster."""
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
        """True if the process that made (or is making) the testbed still runs."""
        return ProcessId(self.owner_pid, self.owner_started).alive

    @property
    def abandoned(self) -> bool:
        """True if no process will finish or remove the testbed: its maker died half-way, or it was made for a run that died."""
        if self.pid_space != process.pid_namespace():
            return False  # process IDs of another container cannot be checked
        return not self.owner_alive and (self.ephemeral or self.phase is not Phase.READY)


class TestbedLocked(UsageError):
    """Another process is changing that testbed."""


def folder_of(name: str) -> Path:
    """Return the folder of a testbed, which need not exist. Refuse names that are paths, because the folder will be removed."""
    return folders.state() / check_name(name)


def cluster_folder(name: str) -> Path:
    """Return the provider's part of a testbed's folder."""
    return folder_of(name) / "cluster"


def failed_logs(name: str) -> Path:
    """Return the folder for the logs of a failed `up`."""
    return folders.state() / ".failed" / check_name(name)


def read(name: str) -> Record | None:
    """Return the record of a testbed, or None if there is no such testbed."""
    return read_at(folder_of(name))


def read_at(folder: Path) -> Record | None:
    """Return the record in that folder, or None if it has none.

    Raise DamagedState for a damaged record, and TestbedError for one that another version wrote or that is not accessible.
    """
    file = folder / "testbed.json"
    try:
        return state_files.read(file, _record)
    except OSError as refused:
        whose = f"the state folder belongs to {folders.owner_of(folder.parent)}: use sudo, or another DRA_TESTBED_STATE"
        hint = whose if isinstance(refused, PermissionError) else ""
        raise TestbedError(f"cannot read {file}: {refused.strerror}", hint=hint) from refused
    except _OtherVersion as other:
        hint = "use the version of dra-testbed that wrote it"
        raise TestbedError(
            f"cannot read {file}: another version of dra-testbed wrote it: {other}", hint=hint
        ) from other


class _OtherVersion(Exception):
    """A record is complete, but has keys or values that this version does not know."""


def _record(content: state_files.Content) -> Record:
    given: dict[str, Any] = {key: typed(content, key, kind) for key, kind in _REQUIRED.items()}
    optional: dict[str, Any] = {"identity": typed({"identity": "", **content}, "identity", str)}
    optional["drivers"] = tuple(state_files.strings({"drivers": [], **content}, "drivers"))
    kept = typed({"kept_nodes": {}, **content}, "kept_nodes", dict)
    optional["kept_nodes"] = {key: state_files.strings(kept, key) for key in kept}
    known = {*given, *optional}
    if unknown := sorted(set(content) - known):
        raise _OtherVersion(f"it contains {', '.join(unknown)}")
    if given["phase"] not in list(Phase):
        raise _OtherVersion(f"its phase is {given['phase']!r:.40}")
    return Record(**{**given, "phase": Phase(given["phase"])}, **optional)


def write(record: Record) -> None:
    """Write the record atomically: a reader sees the old or the new one, and never a folder without a record."""
    folder = folder_of(record.name)
    if not _has_record(folder):
        _make(folder, record)
        return
    state_files.write(folder / "testbed.json", asdict(record))


def discard(name: str) -> None:
    """Remove the folder of a testbed. Rename it first, so that after a kill half-way it is not taken for a testbed."""
    renamed = _private("old")
    with contextlib.suppress(FileNotFoundError):
        folder_of(name).rename(renamed)
    shutil.rmtree(renamed, ignore_errors=True)


def discard_partial_folders() -> None:
    """Remove folders that were being made or removed when their process was killed."""
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
    """Return the names of all testbeds. Raise PermissionError if a folder is not accessible."""
    return sorted(path.name for path in folders.state().iterdir() if is_testbed_name(path.name) and _has_record(path))


def _has_record(folder: Path) -> bool:
    """Return True if there is a record. Unlike `is_file` from Python 3.14 on, raise PermissionError for an inaccessible folder."""
    try:
        return stat.S_ISREG((folder / "testbed.json").stat().st_mode)
    except PermissionError:
        raise
    except OSError:
        return False


def require(name: str) -> Record:
    """Return the record of a testbed. Raise UsageError if there is no such testbed."""
    record = read(name)
    if record is None:
        raise UsageError(
            f"there is no testbed {name}", hint=did_you_mean(name, names()) or f"dra-testbed up --name {name}"
        )
    return record


def this_process() -> ProcessId:
    """Return the identity of this process, for the record of a testbed that it makes."""
    identity = ProcessId.of(os.getpid())
    assert identity is not None  # noqa: S101 - this process runs
    return identity


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock of a testbed, so that no other process changes it. The kernel releases it if this process dies."""
    locks = _locks()
    lock = filelock.FileLock(locks / check_name(name), timeout=0)
    try:
        with _gate(locks):
            lock.acquire()
    except filelock.Timeout as held:
        raise TestbedLocked(
            f"another dra-testbed process is changing testbed {name}",
            hint="wait until it has finished, or choose another --name",
        ) from held
    try:
        yield
    finally:
        with _gate(locks):
            if not folder_of(name).exists():  # each run has its own name, so the locks would accumulate
                Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()


def discard_stale_locks() -> None:
    """Remove the locks that no process holds and that belong to no testbed: a killed process can leave one."""
    for path in _locks().iterdir():
        if is_testbed_name(path.name):
            with contextlib.suppress(TestbedLocked), locked(path.name):
                pass  # `locked` removes a lock without a testbed when it is released


def keep_logs(name: str, collect: Callable[[Path], None]) -> Path:
    """Collect the logs of a failed `up` in a folder that is not removed with the testbed; return the folder."""
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
    """Return the lock for acquiring and removing testbeds' locks, so that no process locks a file that is being removed."""
    return filelock.FileLock(locks / ".gate")


def _make(folder: Path, record: Record) -> None:
    new = _private("new")
    try:
        new.mkdir(mode=0o700)
        state_files.write(new / "testbed.json", asdict(record))
        new.rename(folder)
        state_files.sync_folder(folder.parent)
    except OSError as taken:
        shutil.rmtree(new, ignore_errors=True)
        if not folder.exists():
            raise
        raise UsageError(
            f"{folder} exists and is no testbed", hint="choose another --name, or another DRA_TESTBED_STATE"
        ) from taken


def _private(kind: str) -> Path:
    return folders.state() / f".{kind}-{this_process().pid}-{this_process().started}"
