"""Who tests on a testbed that is up: each session of pytest holds a lock beside the testbed's record while it lives.

STATE/NAME/sessions/RUN@HOST   of the session whose processes mark what they make with RUN-…

What belongs to a lock of this host that nobody holds was left by a session that was killed; the next session ends it, or `sweep`.
Nothing is known of sessions on other hosts, and theirs is never touched: `sweep --kubeconfig --all` is for their cluster.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import filelock

from testbed.bringup.testbeds import Testbed
from testbed.errors import TestbedError, WaitTimeout
from testbed.providers.base import Capability
from testbed.vocabulary.orphaned_objects import delete_orphans_and_wait

_FOLDER, _GATE = "sessions", ".gate"


@contextlib.contextmanager
def session_lock(folder: Path, run: str) -> Iterator[None]:
    """Be a session that lives. It leaves its lock unless it has said that nothing is left of it: `forget`."""
    lock = None
    with contextlib.suppress(OSError):  # a state folder that we may not write: then nobody will clear up after us
        (folder / _FOLDER).mkdir(mode=0o700, exist_ok=True)
        with _gate(folder):
            lock = filelock.FileLock(_lock(folder, run), timeout=0)
            lock.acquire()
    try:
        yield
    finally:
        if lock:
            lock.release()


def discard_lock(folder: Path, run: str) -> None:
    """Nothing is left of this session."""
    with contextlib.suppress(OSError):
        _lock(folder, run).unlink(missing_ok=True)


def killed_sessions(folder: Path) -> list[str]:
    """The sessions of this host that have ended and left their locks."""
    try:
        with _gate(folder):
            return [path.name.rpartition("@")[0] for path in sorted(_lock(folder, "*").parent.iterdir()) if _free(path)]
    except OSError:  # there was no session yet, or they are not ours to look at
        return []


def clean_up_killed_sessions(testbed: Testbed) -> list[str]:
    """Delete what killed sessions left on the testbed, and return when it is gone: its devices are wanted. The names of it."""
    runs = killed_sessions(testbed.folder)
    if not runs or Capability.MAKE_OBJECTS not in testbed.cluster.capabilities:
        return []
    try:
        ended = delete_orphans_and_wait(testbed.kube, testbed.owner, lambda process: process.rpartition("-")[0] in runs)
    except WaitTimeout as stuck:
        raise TestbedError(
            f"what a killed session left on testbed {testbed.name} does not end, and may hold devices\n"
            f"  {stuck.last_seen}",
            hint="a driver that does not unprepare keeps its pods; when it runs again, the same command goes on",
        ) from stuck
    for run in runs:
        discard_lock(testbed.folder, run)
    return ended


def _lock(folder: Path, run: str) -> Path:
    return folder / _FOLDER / f"{run}@{socket.gethostname()}"


def _gate(folder: Path) -> filelock.BaseFileLock:
    """Held while a lock is made or looked at, so that nobody takes one that is being made for one that was left."""
    return filelock.FileLock(folder / _FOLDER / _GATE)


def _free(path: Path) -> bool:
    """Whether a session of this host has left that lock, and nobody holds it."""
    if path.name.rpartition("@")[2] != socket.gethostname():
        return False
    try:
        with filelock.FileLock(path, timeout=0):
            return True
    except filelock.Timeout:
        return False
