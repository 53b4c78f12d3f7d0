"""Faults that are armed while the driver runs: calls of the kubelet that fail, are delayed or hang.

`control` arms them, the DRA service applies them. They are lost when the process ends, so a restarted driver works correctly again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import grpc

from fake_driver.errors import DriverError, suggestion
from fake_driver.journal import Journal
from fake_driver.preparing.claims import ClaimRef
from fake_driver.strict_decoding import Section

CALLS = ("prepare", "unprepare")
_CODES = tuple(code.name for code in grpc.StatusCode if code is not grpc.StatusCode.OK)
_MAX_TIMES, _MAX_DELAY, _MAX_ARMED = 10**6, 3600.0, 100
DevicesOf = Callable[[ClaimRef], Sequence[str]]


class FaultTriggered(DriverError):
    """The whole call must fail with this gRPC code."""

    def __init__(self, code: str, message: str) -> None:
        self.code = grpc.StatusCode[code]
        super().__init__(message)


@dataclass(frozen=True)
class ArmedFault:
    """What happens to a call. With `times` 0 it happens until it is cleared; without `claim` and `device` it happens to every call."""

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
        """Return True if the claim gets an error; False if its call is only delayed, or fails as a whole."""
        return bool(self.message) or not (self.code or self.delay or self.hang)


def parse(request: Section, check_device: Callable[[str], object]) -> ArmedFault:
    """Return the fault in a request and add its problems; `check_device` raises ConfigurationError for an unknown device."""
    call, code = request.get("call", str) or "", (request.get("code", str, "") or "").upper()
    if call and call not in CALLS:
        request.add_problem("call", f"is {call!r}; {suggestion(call, CALLS)}")
    if code and code not in _CODES:
        request.add_problem("code", f"is {code!r}; {suggestion(code, _CODES)}")
    times, message = request.get("times", int, 1), request.printable_line("message")
    if times is None or not 0 <= times <= _MAX_TIMES:
        request.add_problem("times", f"must be 0 (until it is cleared) to {_MAX_TIMES}")
    delay = request.get("delay", object, 0)
    if isinstance(delay, bool) or not isinstance(delay, int | float) or not 0 <= delay <= _MAX_DELAY:
        request.add_problem("delay", f"must be 0 to {_MAX_DELAY:g} seconds")
        delay = 0
    claim, device = request.get("claim", str, "") or "", request.get("device", str, "") or ""
    if device and not request.problems:
        check_device(device)
    return ArmedFault(
        call, times or 0, code, message, float(delay), bool(request.get("hang", bool, False)), claim, device
    )


@dataclass
class _Armed:
    fault: ArmedFault
    left: int


class ArmedFaults:
    """The faults that are armed. Thread-safe."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._armed: list[_Armed] = []
        self._waiting: set[threading.Event] = set()

    def arm(self, fault: ArmedFault) -> bool:
        """Arm a fault; return False if too many are armed."""
        with self._lock:
            if len(self._armed) < _MAX_ARMED:
                self._armed.append(_Armed(fault, fault.times))
                return True
        return False

    def clear(self) -> int:
        """Disarm all faults and end the delays of waiting calls; return how many faults there were."""
        with self._lock:
            count, self._armed = len(self._armed), []
            for over in self._waiting:
                over.set()
        return count

    def as_data(self) -> list[dict[str, Any]]:
        """Return the armed faults for the state that `control` prints."""
        with self._lock:
            return [
                {key: value for key, value in asdict(each.fault).items() if value} | {"left": each.left or "unlimited"}
                for each in self._armed
            ]

    def apply(self, call: str, refs: Sequence[ClaimRef], devices_of: DevicesOf, caller: Any) -> dict[str, str]:
        """Apply the first armed fault that matches a call, including its delay, which also ends when the caller cancels.

        Return the errors of claims by UID; raise FaultTriggered if the whole call must fail.
        """
        over = threading.Event()
        found = self._consume_match(call, refs, devices_of, over)
        if found is None:
            return {}
        fault, matching = found
        text = fault.message or f"fault {call}"
        try:
            self._journal.record(
                "fault", call=call, claims=[ref.uid for ref in matching], code=fault.code, hang=fault.hang
            )
            if (fault.hang or fault.delay) and caller.add_callback(over.set):  # False if the call has ended already
                over.wait(None if fault.hang else fault.delay)
        finally:
            with self._lock:
                self._waiting.discard(over)
        if fault.code or fault.hang:
            raise FaultTriggered(fault.code or "DEADLINE_EXCEEDED", text)
        return {ref.uid: text for ref in matching} if fault.fails_claim else {}

    def _consume_match(
        self, call: str, refs: Sequence[ClaimRef], devices_of: DevicesOf, over: threading.Event
    ) -> tuple[ArmedFault, list[ClaimRef]] | None:
        with self._lock:
            candidates = [each for each in self._armed if each.fault.call == call]
        for armed in candidates:
            matching = [ref for ref in refs if _matches(armed.fault, ref, devices_of)]
            if matching and self._consume(armed, over):
                return armed.fault, matching
        return None

    def _consume(self, armed: _Armed, over: threading.Event) -> bool:
        """Consume one use of a fault; return False if a concurrent call consumed the last one.

        `over` is registered under the same lock, so that `clear` ends the call's delay even if it has not begun.
        """
        with self._lock:
            if armed not in self._armed:
                return False
            self._waiting.add(over)
            if armed.left == 1:
                self._armed.remove(armed)
            armed.left -= bool(armed.left)
            return True


def _matches(fault: ArmedFault, ref: ClaimRef, devices_of: DevicesOf) -> bool:
    if fault.claim and fault.claim not in (ref.uid, f"{ref.namespace}/{ref.name}"):
        return False
    return not fault.device or fault.device in devices_of(ref)
