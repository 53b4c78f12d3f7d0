"""`dra-testbed bench driver`: our fake driver beside two Go drivers, each called as the kubelet calls it, in turn and in one run.

A number counts only when the work was done: slices are there, answers name CDI devices that exist, and nothing stays after unprepare.
What a driver cannot do is refused with the reason, and shown as that.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from testbed.bench.arena import Arena, opened
from testbed.bench.comparison import MANY, Comparison, percentile
from testbed.bench.contestants import ORDINARY, Contestant, example_driver, ours, upstream_driver
from testbed.bench.kubelet import Claim, Kubelet
from testbed.bench.running import Running, running
from testbed.binaries import ensure, inventory, peers
from testbed.errors import DriverFailed, WaitTimeout
from testbed.progress import Progress

_HELD = 100  # claims that are prepared at the same time at most: each has a device of its own
_AT_ONCE = (1, 8)  # what the kubelet does with one pod, and on a busy node


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    kubernetes: str
    claims: int = 200
    rounds: int = 3
    idle: float = 20.0
    build: bool = True  # peers that are not in the cache


def measure(plan: Plan, progress: Progress) -> Comparison:
    """All rounds of all drivers; they take turns, so that what else the machine does hits each alike."""
    contestants = _contestants(plan, progress)
    found = Comparison(contestants[0].title, {each.title: each.version for each in contestants}, plan.kubernetes)
    with opened(plan.kubernetes, progress) as arena:
        with progress.step(f"{plan.claims} claims for each of {len(contestants)} drivers"):
            claims = {each.title: arena.claims(each, plan.claims, _HELD) for each in contestants}
        for number, each in itertools.product(range(1, plan.rounds + 1), contestants):
            with progress.step(f"round {number} of {plan.rounds}: {each.title}"):
                _Visit(each, arena, plan, claims[each.title], found).all()
    return found


def _contestants(plan: Plan, progress: Progress) -> list[Contestant]:
    lock = peers()
    makers = {"dra-example-kubeletplugin": example_driver, "dra-test-driver": upstream_driver}
    if plan.build:
        programs = ensure(lock, list(makers), progress=progress, sources=["build"])
    else:
        programs = {name: held[0] for name, held in inventory(lock).items() if held}
    return [
        ours(),
        *(make(programs[name], lock.program(name).version) for name, make in makers.items() if name in programs),
    ]


@dataclass
class _Visit:
    """One driver's turn in one round."""

    of: Contestant
    arena: Arena
    plan: Plan
    claims: Sequence[Claim]
    found: Comparison

    def all(self) -> None:
        """Once with as many devices as one slice holds, and once with a thousand."""
        self._ordinary()
        if self.of.title not in self.found.unable:
            self._many()

    def _ordinary(self) -> None:
        with (
            self._refusing("start and calls"),
            self.arena.place() as place,
            self._clean(),
            running(self.of, self.arena, place, ORDINARY) as driver,
            Kubelet(driver.registration) as kubelet,
        ):
            self._note({"start": driver.seconds, "writes": driver.writes})
            self._note({"idle": driver.idle_share(self.plan.idle), "memory idle": driver.resident})
            for at_once in _AT_ONCE:
                self._call(driver, kubelet, at_once)
            self._note({"memory after": driver.resident})

    def _many(self) -> None:
        with self._refusing(f"{MANY} devices", for_good=True), self.arena.place() as place, self._clean():
            with running(self.of, self.arena, place, MANY) as driver, Kubelet(driver.registration) as kubelet:
                self._note(
                    {"start, many": driver.seconds, "writes, many": driver.writes, "memory, many": driver.resident}
                )
                self._call(driver, kubelet, 1, suffix=", many")
            if self.of.can_change:
                with running(self.of, self.arena, place, MANY, changed=1) as driver:
                    self._note({"writes, one changed": driver.writes})

    def _call(self, driver: Running, kubelet: Kubelet, at_once: int, suffix: str = "") -> None:
        """Prepare and unprepare all claims, as many as there are devices in one go; looks at the work between the timed parts."""
        self.arena.as_new(self.claims)
        took: dict[str, list[float]] = {"prepare": [], "unprepare": []}
        for start in range(0, len(self.claims), _HELD):
            some = self.claims[start : start + _HELD]
            prepared = kubelet.prepare(some, at_once)
            driver.demand_prepared(prepared.ids)
            released = kubelet.unprepare(some, at_once)
            driver.demand_released([claim.uid for claim in some])
            took["prepare"] += prepared.milliseconds
            took["unprepare"] += released.milliseconds
        for verb, values in took.items():
            self._note({f"{verb} p{rank}, {at_once}{suffix}": percentile(values, rank) for rank in (50, 99)})

    def _note(self, values: dict[str, float]) -> None:
        for key, value in values.items():
            self.found.note(self.of.title, key, value)

    @contextlib.contextmanager
    def _refusing(self, what: str, *, for_good: bool = False) -> Iterator[None]:
        """What the driver does wrong in there is a reason and no number; what is ours ends the bench.

        `for_good`: it would be the same in the next round.
        """
        try:
            yield
        except (DriverFailed, WaitTimeout) as refused:
            self.found.refuse(self.of.title, what, refused.what, for_good=for_good)

    @contextlib.contextmanager
    def _clean(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.arena.wipe(self.of)
