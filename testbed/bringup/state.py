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
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import filelock

from testbed import folders
from testbed.errors import UsageError, did_you_mean
from testbed.models.names import check_name, is_name
from testbed.process import ProcessId


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
    ephemeral: bool
    config: dict[str, Any]

    @property
    def owner_alive(self) -> bool:
        """Whether the process that made (or is making) it still runs."""
        return ProcessId(self.owner_pid, self.owner_started).alive

    @property
    def abandoned(self) -> bool:
        """Whether nobody will ever finish or remove it: its maker died in the middle, or it was made for a run that died."""
        return not self.owner_alive and (self.ephemeral or self.phase is not Phase.READY)


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
    """The record of a testbed, or None. A folder without a readable record is what a kill in the first moment leaves: abandoned."""
    return read_at(folder_of(name))


def read_at(folder: Path) -> Record | None:
    """The record in that folder."""
    if not folder.is_dir():
        return None
    try:
        content = json.loads((folder / "testbed.json").read_text())
        return Record(**{**content, "phase": Phase(content["phase"])})
    except (OSError, ValueError, TypeError, KeyError):
        return Record(folder.name, "local", Phase.CREATING, 0, 0, ephemeral=True, config={})


def write(record: Record) -> None:
    """Write the record so that a reader sees the old or the new one, never half of it."""
    folder = folder_of(record.name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = folder / f".testbed.json.{os.getpid()}"
    temporary.write_text(json.dumps(asdict(record), indent=1))
    temporary.replace(folder / "testbed.json")


def names() -> list[str]:
    """Every testbed that has a folder."""
    return sorted(path.name for path in folders.state().iterdir() if path.is_dir() and is_name(path.name))


def known(name: str) -> Record:
    """The record of a testbed that must be there."""
    record = read(name)
    if record is None:
        raise UsageError(
            f"there is no testbed {name}", hint=did_you_mean(name, names()) or f"dra-testbed up --name {name}"
        )
    return record


def me() -> ProcessId:
    """This process, as an owner."""
    mine = ProcessId.of(os.getpid())
    assert mine is not None  # noqa: S101 - we are alive
    return mine


@contextlib.contextmanager
def changing(name: str) -> Iterator[None]:
    """Be the only one who changes that testbed. The lock ends with its holder, however that one ends."""
    locks = folders.state() / ".locks"
    locks.mkdir(mode=0o700, exist_ok=True)
    lock = filelock.FileLock(locks / check_name(name), timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout as held:
        raise UsageError(
            f"another dra-testbed is changing testbed {name} right now",
            hint="wait for it, or choose another --name",
        ) from held
    try:
        yield
    finally:
        lock.release()


def keep_logs(name: str, collect: Callable[[Path], None]) -> Path:
    """Keep the logs of a failed `up` where the undoing does not remove them; returns where."""
    target = failed_logs(name)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(mode=0o700, parents=True)
    collect(target)
    return target
