"""When a fault begins: while the test of a requirement runs, and its objects are in a certain state. Pure, except for EventTail."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Event = Mapping[str, Any]
Object = Mapping[str, Any]
Check = Callable[[Sequence[Object]], bool]

STARTED = "has started"
POD_EXISTS = "has a pod"
POD_RUNS = "has a running pod"
POD_ENDS = "has a terminating pod"
CHECKS: Mapping[str, Check] = {
    POD_EXISTS: bool,
    POD_RUNS: lambda pods: any(each.get("status", {}).get("phase") == "Running" for each in pods),
    POD_ENDS: lambda pods: any("deletionTimestamp" in each["metadata"] for each in pods),
}


@dataclass(frozen=True)
class Moment:
    """The test of a requirement runs and its pods are in a state: STARTED or one of CHECKS."""

    requirement: str
    state: str = STARTED

    def __str__(self) -> str:
        return f"when the test of {self.requirement} {self.state}"

    def is_now(self, running: Collection[str], pods: Callable[[], Sequence[Object]]) -> bool:
        """Return True if the moment has come. `running` are the requirements whose tests run, `pods` returns those of all namespaces."""
        if self.requirement not in running or self.state == STARTED:
            return self.requirement in running
        return CHECKS[self.state](pods_of(self.requirement, pods()))


def pods_of(requirement: str, pods: Sequence[Object]) -> list[Object]:
    """Return the pods in the namespaces of a requirement's tests."""
    prefix = f"dra-{requirement.lower()}-"
    return [each for each in pods if each["metadata"]["namespace"].startswith(prefix)]


@dataclass
class RunningTests:
    """The tests that run now, from the events of a run."""

    _by_test: dict[str, str] = field(default_factory=dict)

    @property
    def requirements(self) -> frozenset[str]:
        """Return the requirements of these tests."""
        return frozenset(self._by_test.values())

    def add(self, events: Iterable[Event]) -> None:
        """Take the next events into account."""
        for each in events:
            if each["event"] == "test-started":
                self._by_test[each["test"]] = each["id"]
            elif each["event"] == "test-finished":
                self._by_test.pop(each["test"], None)


@dataclass
class EventTail:
    """Reads the events of a run as they are written. The log may be written anew when the suites begin."""

    file: Path
    _seen: bytes = b""

    def new(self) -> list[Event]:
        """Return the events that were written since the last call."""
        try:
            written = self.file.read_bytes()
        except FileNotFoundError:
            written = b""
        if not written.startswith(self._seen):
            self._seen = b""
        complete = written[len(self._seen) : written.rfind(b"\n") + 1]
        self._seen += complete
        return [json.loads(line) for line in complete.splitlines()]
