"""The table of pairs: a fault, and a driver that is correct or wrong, with the verdicts that its requirements may have. For `running`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from ci.judge.faults import Fault, Freeze, Kill
from ci.judge.moments import Moment

Verdicts = frozenset[str]
JUDGED_RIGHT: Verdicts = frozenset({"pass", "flaky"})
NEVER_FAIL: Verdicts = JUDGED_RIGHT | {"error", "timeout", "blocked"}
NEVER_PASS: Verdicts = frozenset({"fail", "error", "timeout", "blocked"})


@dataclass(frozen=True)
class Pair:
    """A fault in the test of a requirement. `expected` are the requirements that run, each with the verdicts that it may have.

    `driver` is a mutant of the fake driver; '' is the correct one.
    """

    name: str
    fault: Fault
    expected: Mapping[str, Verdicts]
    why: str
    when: Moment | None = None  # None: during the whole run
    driver: str = ""
    patience: float = 0.5
    fast: bool = field(default=False, compare=False)  # one of those that .ci/run runs

    @property
    def keyword(self) -> str:
        """Return the -k expression of its requirements."""
        return " or ".join(sorted(self.expected))

    @property
    def digest(self) -> str:
        """Return eight hexadecimal digits that change with the pair, except for its reason."""
        expected = {key: sorted(verdicts) for key, verdicts in sorted(self.expected.items())}
        content = (self.name, repr(self.fault), repr(self.when), expected, self.driver, self.patience)
        return hashlib.sha256(repr(content).encode()).hexdigest()[:8]


PAIRS: tuple[Pair, ...] = (
    Pair(
        "scheduler-killed",
        Kill("kube-scheduler"),
        {"CLAIM-001": NEVER_FAIL, "SHARE-001": JUDGED_RIGHT},
        "The pod is not scheduled. The scheduler runs again for the next test.",
        when=Moment("CLAIM-001"),
    ),
    Pair(
        "scheduler-frozen",
        Freeze("kube-scheduler", 5),
        {"CLAIM-001": JUDGED_RIGHT},
        "The test waits longer for its pod.",
        when=Moment("CLAIM-001"),
        fast=True,
    ),
)
