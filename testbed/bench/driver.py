"""`dra-testbed bench driver`: our fake driver beside two Go drivers, each called as the kubelet calls it, in turn and in one run.

A number counts only when the work was done: slices are there, answers name CDI devices that exist, and nothing stays after unprepare.
What a driver cannot do is refused with the reason, and shown as that.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from testbed.bench.bare_cluster import BareCluster, start_bare_cluster
from testbed.bench.comparison import MANY_DEVICES, Comparison, percentile
from testbed.bench.driver_process import DriverProcess, running_driver
from testbed.bench.kubelet import ClaimRef, KubeletClient
from testbed.bench.measured_drivers import (
    DEVICES_PER_SLICE,
    MeasuredDriver,
    example_driver,
    fake_driver,
    upstream_driver,
)
from testbed.binaries import ensure, inventory, peers
from testbed.errors import DriverFailed, WaitTimeout
from testbed.progress import Progress

_MAX_PREPARED = 100  # claims that are prepared at the same time at most: each has a device of its own
_CONCURRENCY = (1, 8)  # what the kubelet does with one pod, and on a busy node


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
    drivers = _measured_drivers(plan, progress)
    found = Comparison(drivers[0].title, {each.title: each.version for each in drivers}, plan.kubernetes)
    with start_bare_cluster(plan.kubernetes, progress) as cluster:
        with progress.step(f"{plan.claims} claims for each of {len(drivers)} drivers"):
            claims = {each.title: cluster.claims(each, plan.claims, _MAX_PREPARED) for each in drivers}
        for number, each in itertools.product(range(1, plan.rounds + 1), drivers):
            with progress.step(f"round {number} of {plan.rounds}: {each.title}"):
                _DriverRound(each, cluster, plan, claims[each.title], found).measure()
    return found


def _measured_drivers(plan: Plan, progress: Progress) -> list[MeasuredDriver]:
    lock = peers()
    makers = {"dra-example-kubeletplugin": example_driver, "dra-test-driver": upstream_driver}
    if plan.build:
        programs = ensure(lock, list(makers), progress=progress, sources=["build"])
    else:
        programs = {name: held[0] for name, held in inventory(lock).items() if held}
    return [
        fake_driver(),
        *(make(programs[name], lock.program(name).version) for name, make in makers.items() if name in programs),
    ]


@dataclass
class _DriverRound:
    """One driver's turn in one round."""

    driver: MeasuredDriver
    cluster: BareCluster
    plan: Plan
    claims: Sequence[ClaimRef]
    found: Comparison

    def measure(self) -> None:
        """Once with as many devices as one slice holds, and once with a thousand."""
        self._measure_one_slice()
        if self.driver.title not in self.found.excluded:
            self._measure_many_devices()

    def _measure_one_slice(self) -> None:
        with (
            self._recording_failures("start and calls"),
            self.cluster.driver_environment() as environment,
            self._deleting_slices(),
            running_driver(self.driver, self.cluster, environment, DEVICES_PER_SLICE) as process,
            KubeletClient(process.registration) as kubelet,
        ):
            self._note({"start": process.seconds, "writes": process.writes})
            self._note({"idle": process.idle_cpu_percent(self.plan.idle), "memory idle": process.resident_mib})
            for concurrency in _CONCURRENCY:
                self._call(process, kubelet, concurrency)
            self._note({"memory after": process.resident_mib})

    def _measure_many_devices(self) -> None:
        with (
            self._recording_failures(f"{MANY_DEVICES} devices", permanent=True),
            self.cluster.driver_environment() as environment,
            self._deleting_slices(),
        ):
            with (
                running_driver(self.driver, self.cluster, environment, MANY_DEVICES) as process,
                KubeletClient(process.registration) as kubelet,
            ):
                self._note(
                    {
                        "start, many": process.seconds,
                        "writes, many": process.writes,
                        "memory, many": process.resident_mib,
                    }
                )
                self._call(process, kubelet, 1, suffix=", many")
            if self.driver.can_change:
                with running_driver(self.driver, self.cluster, environment, MANY_DEVICES, changed=1) as process:
                    self._note({"writes, one changed": process.writes})

    def _call(self, process: DriverProcess, kubelet: KubeletClient, concurrency: int, suffix: str = "") -> None:
        """Prepare and unprepare all claims, as many as there are devices in one go; looks at the work between the timed parts."""
        self.cluster.clear_device_status(self.claims)
        took: dict[str, list[float]] = {"prepare": [], "unprepare": []}
        for start in range(0, len(self.claims), _MAX_PREPARED):
            some = self.claims[start : start + _MAX_PREPARED]
            prepared = kubelet.prepare(some, concurrency)
            process.check_prepared(prepared.ids)
            released = kubelet.unprepare(some, concurrency)
            process.check_unprepared([claim.uid for claim in some])
            took["prepare"] += prepared.milliseconds
            took["unprepare"] += released.milliseconds
        for verb, values in took.items():
            self._note({f"{verb} p{rank}, {concurrency}{suffix}": percentile(values, rank) for rank in (50, 99)})

    def _note(self, values: dict[str, float]) -> None:
        for key, value in values.items():
            self.found.add(self.driver.title, key, value)

    @contextlib.contextmanager
    def _recording_failures(self, what: str, *, permanent: bool = False) -> Iterator[None]:
        """What the driver does wrong in there is a reason and no number; what is ours ends the bench.

        `permanent`: it would be the same in the next round.
        """
        try:
            yield
        except (DriverFailed, WaitTimeout) as refused:
            self.found.add_failure(self.driver.title, what, refused.what, permanent=permanent)

    @contextlib.contextmanager
    def _deleting_slices(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.cluster.delete_slices(self.driver)
