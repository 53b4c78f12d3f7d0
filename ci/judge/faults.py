"""The faults: killed or frozen processes of the testbed, watches that are late or lose events, contradictory slices.

`pairs` names them, `running` injects them. Processes are signalled while the run goes on; the other faults last for the whole run.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ci.judge.moments import Event, Moment, Object, RunningTests
from testbed.providers.base import Component


@dataclass(frozen=True)
class Kill:
    """SIGKILL to a component, on all machines that have it."""

    component: str

    def __str__(self) -> str:
        return f"{self.component} is killed"


@dataclass(frozen=True)
class Freeze:
    """SIGSTOP to a component, on all machines that have it, and SIGCONT some seconds later."""

    component: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.component} is frozen for {self.seconds:g} s"


@dataclass(frozen=True)
class LateWatches:
    """The testbed sees every watch event some seconds late, and none that comes after the API server has ended the watch."""

    seconds: float

    def __str__(self) -> str:
        return f"watch events are {self.seconds:g} s late"


@dataclass(frozen=True)
class LostEvents:
    """The testbed sees no watch events of these types."""

    types: tuple[str, ...]

    def __str__(self) -> str:
        return f"watches lose all events {' and '.join(self.types)}"


@dataclass(frozen=True)
class ForeignSlices:
    """Another driver has published slices that contradict each other: the same device twice, different counts."""

    def __str__(self) -> str:
        return "another driver has published contradictory slices"


Fault = Kill | Freeze | LateWatches | LostEvents | ForeignSlices


class Injection(Protocol):
    """A fault in one run."""

    def observe(self, events: Sequence[Event]) -> None:
        """Take the new events of the run into account. Called all the time while the run goes on."""

    def lift(self) -> None:
        """End the fault, if it has not ended by itself."""

    @property
    def happened(self) -> bool:
        """Whether the fault has affected the run."""


@dataclass
class OnProcesses:
    """A Kill or a Freeze, in one run. It is injected once, so a repetition of the test is not affected.

    A component that died in each repetition would be the driver's failure.
    """

    fault: Kill | Freeze
    moment: Moment
    components: Callable[[], Iterable[Component]]
    pods: Callable[[], Sequence[Object]]
    clock: Callable[[], float] = time.monotonic
    happened: bool = False
    _running: RunningTests = field(default_factory=RunningTests)
    _frozen: list[int] = field(default_factory=list)
    _thaw_at: float = 0.0

    def observe(self, events: Sequence[Event]) -> None:
        """Inject the fault if the moment has come, and end a freeze whose time is over."""
        self._running.add(events)
        if self._frozen and self.clock() >= self._thaw_at:
            self.lift()
        if not self.happened and self.moment.is_now(self._running.requirements, self.pods):
            self._inject()

    def lift(self) -> None:
        """Continue the frozen processes."""
        for pid in self._frozen:
            thaw(pid)
        self._frozen = []

    def _inject(self) -> None:
        found = [each.process.pid for each in self._targets() if each.process]
        for pid in found:
            os.kill(pid, signal.SIGSTOP if isinstance(self.fault, Freeze) else signal.SIGKILL)
        if isinstance(self.fault, Freeze):
            self._frozen, self._thaw_at = found, self.clock() + self.fault.seconds
        self.happened = bool(found)

    def _targets(self) -> list[Component]:
        return [each for each in self.components() if each.alive and each.name.endswith(f"/{self.fault.component}")]


def thaw(pid: int) -> None:
    """Continue a frozen process, and the nsenter that started it: it stops itself together with its child."""
    for each in (pid, _parent_nsenter(pid)):
        if each:
            try:
                os.kill(each, signal.SIGCONT)
            except ProcessLookupError:  # it was killed while it was frozen
                continue


def _parent_nsenter(pid: int) -> int:
    try:
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return parent if Path(f"/proc/{parent}/comm").read_text().strip() == "nsenter" else 0
    except OSError:
        return 0
