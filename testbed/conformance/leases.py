"""Leases on devices, so that tests that run at the same time need no more devices than there are. The plugin takes one for each test."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import filelock

from testbed.process import ProcessId
from testbed.waiting import Budget, NotYet, eventually

FILE, _LOCK = ".leases.json", ".leases.lock"
_TURN = Budget("lease", 900, "each test before it may take as long as a test may take")
_WORKERS_PER_CORE = 2  # tests wait for Kubernetes more than they compute
_USUAL_DEVICES = 2  # per test; the few that need more wait in the queue


def workers(cores: int, node_devices: int) -> int:
    """Return how many tests can run at the same time without waiting for each other; 0 if that is only one."""
    found = min(cores * _WORKERS_PER_CORE, node_devices // _USUAL_DEVICES)
    return found if found > 1 else 0


@dataclass(frozen=True)
class QueueEntry:
    """One request in the queue: the test, its process, and the devices that it waits for or holds."""

    test: str
    pid: int
    started: int
    devices: int
    reserved_class: str = ""


@dataclass(frozen=True)
class Leases:
    """The leases of one run. `devices` is how many the smallest node has.

    The scheduler chooses the devices, so a lease is only a number. All pods of a test may be scheduled to one node, so the smallest node is
    the limit. Requests wait in one queue, in a file. A request gets all its devices at once and never overtakes another one: no test
    starves, and none holds devices while it waits.
    Devices of a reserved class are leased as a whole, together with one ordinary device, so a test with all ordinary devices runs alone.
    """

    folder: Path
    devices: int

    @contextlib.contextmanager
    def lease(
        self,
        test: str,
        devices: int | None,
        on_wait: Callable[[str], None] = lambda _: None,
        *,
        reserved_class: str = "",
    ) -> Iterator[None]:
        """Wait for this many devices, or all of them (None), and those of a reserved class, and hold them.

        `on_wait` gets the tests that are ahead in the queue, if there are any.
        """
        most = max(1, self.devices)
        mine = QueueEntry(test, *_this_process(), most if devices is None else min(devices, most), reserved_class)
        self._change(lambda queue: [*queue, mine])
        try:
            if self._ahead(mine):
                self._wait(mine, on_wait)
            yield
        finally:
            self._change(lambda queue: [each for each in queue if each != mine])

    def _wait(self, mine: QueueEntry, on_wait: Callable[[str], None]) -> None:
        def my_turn() -> None:
            ahead = self._ahead(mine)
            if ahead:
                raise NotYet(
                    "; ".join(f"{each.test} has {each.devices} {each.reserved_class}".rstrip() for each in ahead)
                )

        on_wait(", ".join(each.test for each in self._ahead(mine)))
        eventually(my_turn, f"{mine.devices} of {self.devices} devices for {mine.test}", _TURN, longest_pause=0.05)

    def _ahead(self, mine: QueueEntry) -> list[QueueEntry]:
        """Return the entries that must end first; none if the devices are free."""
        with self._locked():
            queue = self._read()
        ahead = queue[: queue.index(mine)]
        if sum(each.devices for each in ahead) + mine.devices > max(1, self.devices):
            return ahead
        return [each for each in ahead if mine.reserved_class and each.reserved_class == mine.reserved_class]

    def _change(self, change: Callable[[list[QueueEntry]], list[QueueEntry]]) -> None:
        with self._locked():
            queue = [asdict(each) for each in change(self._read())]
            new = self.folder / f"{FILE}.new"  # replaced atomically, because a worker may be killed at any time
            new.write_text(json.dumps(queue))
            new.replace(self.folder / FILE)

    def _read(self) -> list[QueueEntry]:
        """Return the queue without the entries of processes that have ended."""
        try:
            entries = [QueueEntry(**each) for each in json.loads((self.folder / FILE).read_text() or "[]")]
        except FileNotFoundError:
            return []
        return [each for each in entries if ProcessId(each.pid, each.started).alive]

    def _locked(self) -> filelock.BaseFileLock:
        return filelock.FileLock(self.folder / _LOCK)


def discard(folder: Path) -> None:
    """Remove the queue of an earlier run."""
    (folder / FILE).unlink(missing_ok=True)


def _this_process() -> tuple[int, int]:
    found = ProcessId.of(os.getpid())
    return (found.pid, found.started) if found else (os.getpid(), 0)
