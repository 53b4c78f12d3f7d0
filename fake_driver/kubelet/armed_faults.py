"""Faults that are armed while the driver runs: calls that fail, wait or never end, and a process that dies at a named point.

`console` arms them, the servicers and the verbs walk into them. They live in this process alone: a driver that is started anew is right
again, so that nobody has to find out why a driver that he restarted still fails.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import grpc

from fake_driver.errors import DriverError, suggestion
from fake_driver.journal import Journal
from fake_driver.preparing.claims import ClaimRef
from fake_driver.preparing.driver import CRASH_POINTS
from fake_driver.strict_decoding import Section

CALLS = ("prepare", "unprepare")
_CODES = tuple(code.name for code in grpc.StatusCode if code is not grpc.StatusCode.OK)
_MOST_TIMES, _LONGEST_DELAY, _MOST_ARMED = 10**6, 3600.0, 100
_KILLED = 137


class FaultTriggered(DriverError):
    """The whole call has to fail with this code."""

    def __init__(self, code: str, message: str) -> None:
        self.code = grpc.StatusCode[code]
        super().__init__(message)


@dataclass(frozen=True)
class ArmedFault:
    """What happens to a call. No `times` means until it is cleared; no `claim` and no `device` means every call."""

    call: str
    times: int = 1
    code: str = ""
    message: str = ""
    delay: float = 0.0
    hang: bool = False
    claim: str = ""
    device: str = ""

    @property
    def fails_claim(self) -> bool:
        """Whether the claim gets an error; one that only waits is right in the end."""
        return bool(self.message) or not (self.code or self.delay or self.hang)


def parse(asked: Section, known: Callable[[str], object]) -> ArmedFault:
    """The fault that a request describes; `known` refuses the name of a device that is not there."""
    call, code = asked.get("call", str) or "", (asked.get("code", str, "") or "").upper()
    if call and call not in CALLS:
        asked.add_problem("call", f"is {call!r}; {suggestion(call, CALLS)}")
    if code and code not in _CODES:
        asked.add_problem("code", f"is {code!r}; {suggestion(code, _CODES)}")
    times, message = asked.get("times", int, 1), asked.printable_line("message")
    if times is None or not 0 <= times <= _MOST_TIMES:
        asked.add_problem("times", f"must be 0 (until it is cleared) to {_MOST_TIMES}")
    delay = asked.get("delay", object, 0)
    if isinstance(delay, bool) or not isinstance(delay, int | float) or not 0 <= delay <= _LONGEST_DELAY:
        asked.add_problem("delay", f"must be 0 to {_LONGEST_DELAY:g} seconds")
        delay = 0
    claim, device = asked.get("claim", str, "") or "", asked.get("device", str, "") or ""
    if device and not asked.problems:
        known(device)
    return ArmedFault(
        call, times or 0, code, message, float(delay), bool(asked.get("hang", bool, False)), claim, device
    )


@dataclass
class _Armed:
    fault: ArmedFault
    left: int


class ArmedFaults:
    """All that is armed. Thread-safe."""

    def __init__(self, journal: Journal, die: Callable[[int], Any] = os._exit) -> None:
        self._journal, self._die = journal, die
        self._lock = threading.Lock()
        self._armed: list[_Armed] = []
        self._points: list[str] = []
        self._held: set[threading.Event] = set()

    def arm(self, fault: ArmedFault) -> bool:
        """Set a fault; False when there are too many."""
        with self._lock:
            if len(self._armed) < _MOST_ARMED:
                self._armed.append(_Armed(fault, fault.times))
                return True
        return False

    def arm_crash(self, point: str) -> None:
        """Die the next time that the driver is there."""
        with self._lock:
            self._points = sorted({*self._points, point})

    def clear(self) -> int:
        """Take all away, and let go who waits in one; how many there were."""
        with self._lock:
            count = len(self._armed) + len(self._points)
            for over in self._held:
                over.set()
            self._armed, self._points = [], []
        return count

    def as_data(self) -> dict[str, Any]:
        """What is armed, for people."""
        with self._lock:
            faults = [
                {key: value for key, value in asdict(each.fault).items() if value} | {"left": each.left or "no end"}
                for each in self._armed
            ]
            return {"faults": faults, "crash": list(self._points)}

    def reached(self, point: str) -> None:
        """The driver is at a point where it may have to die."""
        with self._lock:
            dies = point in self._points
        if dies:
            self._journal.record("crash", point=point)
            self._die(_KILLED)

    def apply(
        self, call: str, refs: Sequence[ClaimRef], devices_of: Callable[[ClaimRef], Sequence[str]], caller: Any
    ) -> dict[str, str]:
        """A call has come. By UID, the errors of claims that must fail; Sprung when the whole call must. Waits, where it has to.

        `caller` tells when nobody waits for the answer any more.
        """
        over = threading.Event()
        found = self._first(call, refs, devices_of, over)
        if found is None:
            return {}
        fault, caught = found
        text = fault.message or f"fault {call}"
        try:
            self._journal.record(
                "fault", call=call, claims=[ref.uid for ref in caught], code=fault.code, hang=fault.hang
            )
            if (fault.hang or fault.delay) and caller.add_callback(over.set):  # else it has ended already
                over.wait(None if fault.hang else fault.delay)
        finally:
            with self._lock:
                self._held.discard(over)
        if fault.code or fault.hang:
            raise FaultTriggered(fault.code or "DEADLINE_EXCEEDED", text)
        return {ref.uid: text for ref in caught} if fault.fails_claim else {}

    def _first(
        self,
        call: str,
        refs: Sequence[ClaimRef],
        devices_of: Callable[[ClaimRef], Sequence[str]],
        over: threading.Event,
    ) -> tuple[ArmedFault, list[ClaimRef]] | None:
        with self._lock:
            here = [each for each in self._armed if each.fault.call == call]
        for armed in here:
            caught = [ref for ref in refs if _catches(armed.fault, ref, devices_of)]
            if caught and self._count(armed, over):
                return armed.fault, caught
        return None

    def _count(self, armed: _Armed, over: threading.Event) -> bool:
        """One time less; False when another call was quicker. Who clears from now on lets this call go, however far it has come."""
        with self._lock:
            if armed not in self._armed:
                return False
            self._held.add(over)
            if armed.left == 1:
                self._armed.remove(armed)
            armed.left -= bool(armed.left)
            return True


def check_point(asked: Section) -> str:
    """The point that a request names."""
    point = asked.get("point", str) or ""
    if point and point not in CRASH_POINTS:
        asked.add_problem("point", f"is {point!r}; {suggestion(point, CRASH_POINTS)}")
    return point


def _catches(fault: ArmedFault, ref: ClaimRef, devices_of: Callable[[ClaimRef], Sequence[str]]) -> bool:
    if fault.claim and fault.claim not in (ref.uid, f"{ref.namespace}/{ref.name}"):
        return False
    return not fault.device or fault.device in devices_of(ref)
