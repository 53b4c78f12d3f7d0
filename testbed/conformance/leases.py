"""Leases on devices, so that no two tests that run at once want the same ones. The plugin takes one for each test that makes something.

The scheduler chooses the devices, so what must not be oversubscribed is their number. Tests may put all that they want on one node, so
what is lent is what the smallest node has. Everybody stands in one queue, written down in one file: whoever finds room beside all who
came before him has his lease, whole and at once. So nobody waits while he holds something, and nobody is overtaken for ever.
Devices of a special class are lent all together, beside one ordinary device, so that who has all ordinary ones is alone indeed.
Whoever wants special devices that others get as well asks for everything: `selection.alone`.
"""

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
_A_CORE = 2  # tests side by side: they wait for Kubernetes more than they compute
_USUAL = 2  # devices that a test asks for; the few that want more wait in the queue


def workers(cores: int, node_devices: int) -> int:
    """How many tests can run side by side without being in each other's way; 0 where there is nothing to win by it."""
    found = min(cores * _A_CORE, node_devices // _USUAL)
    return found if found > 1 else 0


@dataclass(frozen=True)
class Place:
    """One place in the queue: who stands there, in which process, and what he wants or has."""

    who: str
    pid: int
    started: int
    devices: int
    special: str = ""


@dataclass(frozen=True)
class Leases:
    """The devices that the processes of one run may hand out among themselves; `devices` is what each node has at least."""

    folder: Path
    devices: int

    @contextlib.contextmanager
    def held(
        self, who: str, devices: int | None, say: Callable[[str], None] = lambda _: None, *, special: str = ""
    ) -> Iterator[None]:
        """Have so many devices, or all of them (None), and those of a special class; wait for them first.

        `say` is told who is in the way.
        """
        most = max(1, self.devices)
        mine = Place(who, *_ourselves(), most if devices is None else min(devices, most), special)
        self._change(lambda queue: [*queue, mine])
        try:
            if self._ahead(mine):
                self._wait(mine, say)
            yield
        finally:
            self._change(lambda queue: [each for each in queue if each != mine])

    def _wait(self, mine: Place, say: Callable[[str], None]) -> None:
        def my_turn() -> None:
            ahead = self._ahead(mine)
            if ahead:
                raise NotYet("; ".join(f"{each.who} has {each.devices} {each.special}".rstrip() for each in ahead))

        say(", ".join(each.who for each in self._ahead(mine)))
        eventually(my_turn, f"{mine.devices} of {self.devices} devices for {mine.who}", _TURN, longest_pause=0.05)

    def _ahead(self, mine: Place) -> list[Place]:
        """Who has to go before there is room; nobody is the good news."""
        with self._locked():
            queue = self._read()
        ahead = queue[: queue.index(mine)]
        if sum(each.devices for each in ahead) + mine.devices > max(1, self.devices):
            return ahead
        return [each for each in ahead if mine.special and each.special == mine.special]

    def _change(self, change: Callable[[list[Place]], list[Place]]) -> None:
        with self._locked():
            queue = [asdict(each) for each in change(self._read())]
            written = (
                self.folder / f"{FILE}.new"
            )  # a worker that is killed just now leaves the whole old queue, or the whole new one
            written.write_text(json.dumps(queue))
            written.replace(self.folder / FILE)

    def _read(self) -> list[Place]:
        """Who is in the queue and alive: a worker that was killed holds nothing."""
        try:
            places = [Place(**each) for each in json.loads((self.folder / FILE).read_text() or "[]")]
        except FileNotFoundError:
            return []
        return [each for each in places if ProcessId(each.pid, each.started).alive]

    def _locked(self) -> filelock.BaseFileLock:
        return filelock.FileLock(self.folder / _LOCK)


def discard(folder: Path) -> None:
    """Forget an earlier run's queue."""
    (folder / FILE).unlink(missing_ok=True)


def _ourselves() -> tuple[int, int]:
    found = ProcessId.of(os.getpid())
    return (found.pid, found.started) if found else (os.getpid(), 0)
