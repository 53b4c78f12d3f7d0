"""The pytest sessions that use a testbed. Each one holds a lock in the testbed's folder while it runs.

STATE/NAME/sessions/RUN@HOST   the lock of a session, whose processes label the objects that they create with RUN-…

A lock of this host that no process holds belongs to a killed session. The next session, or `sweep`, deletes the objects of that session.
Objects of sessions on other hosts are not touched, because their locks cannot be checked: `sweep --kubeconfig --all` deletes them.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock

from testbed.bringup.testbeds import Testbed
from testbed.drivers import expected_nodes, wait_ready
from testbed.drivers.changed_daemonsets import undo_all
from testbed.drivers.releases import restore
from testbed.errors import TestbedError, WaitTimeout
from testbed.providers.base import Capability
from testbed.vocabulary.orphaned_objects import delete_orphans_and_wait

_FOLDER, _GATE = "sessions", ".gate"


@contextlib.contextmanager
def session_lock(folder: Path, run: str) -> Iterator[None]:
    """Hold the lock of a session. The lock file stays until `discard_lock`, which says that the session has cleaned up."""
    lock = None
    with contextlib.suppress(
        OSError
    ):  # without write access to the state folder, a killed session is not cleaned up later
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
    """Remove the lock file of a session that has cleaned up."""
    with contextlib.suppress(OSError):
        _lock(folder, run).unlink(missing_ok=True)


def killed_sessions(folder: Path) -> list[str]:
    """Return the sessions of this host that ended without cleaning up."""
    try:
        with _gate(folder):
            return [path.name.rpartition("@")[0] for path in sorted(_lock(folder, "*").parent.iterdir()) if _free(path)]
    except OSError:  # there was no session yet, or the folder is not accessible
        return []


def clean_up_killed_sessions(testbed: Testbed) -> list[str]:
    """Undo what killed sessions changed, delete their objects and wait until they are gone: they may hold devices. Return the names."""
    runs = killed_sessions(testbed.folder)
    if not runs or Capability.MAKE_OBJECTS not in testbed.cluster.capabilities:
        return []

    def is_gone(process: str) -> bool:
        return process.rpartition("-")[0] in runs

    undo_all(testbed.kube, testbed.owner, is_gone)
    _restore_release(testbed, is_gone)
    try:
        ended = delete_orphans_and_wait(testbed.kube, testbed.owner, is_gone)
    except WaitTimeout as stuck:
        raise TestbedError(
            f"objects of a killed session on testbed {testbed.name} are not deleted, and may hold devices\n"
            f"  last seen: {stuck.last_seen}",
            hint="pods can only end while the driver unprepares their claims: restart it, and run the command again",
        ) from stuck
    for run in runs:
        discard_lock(testbed.folder, run)
    return ended


def _restore_release(testbed: Testbed, is_gone: Callable[[str], bool]) -> None:
    """Install this release of the driver again if a killed session left the previous one."""
    if testbed.driver_file and restore(testbed.kube, testbed.owner, testbed.folder, testbed.driver_file, is_gone):
        nodes = expected_nodes(testbed.kube, testbed.driver_file, testbed.kept_nodes)
        wait_ready(testbed.kube, testbed.driver_file, nodes)


def _lock(folder: Path, run: str) -> Path:
    return folder / _FOLDER / f"{run}@{socket.gethostname()}"


def _gate(folder: Path) -> filelock.BaseFileLock:
    """Return the lock for creating and checking session locks, so that a new one is not taken for an abandoned one."""
    return filelock.FileLock(folder / _FOLDER / _GATE)


def _free(path: Path) -> bool:
    """Return True if the lock belongs to this host and no process holds it."""
    if path.name.rpartition("@")[2] != socket.gethostname():
        return False
    try:
        with filelock.FileLock(path, timeout=0):
            return True
    except filelock.Timeout:
        return False
