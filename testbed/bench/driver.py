"""`dra-testbed bench driver`: compare the fake driver with two Go drivers in the same run, with the calls of a kubelet.

A value counts only if the driver did its work: all slices are published, answers name CDI devices that exist, and unprepare removes
them. Otherwise the reason is shown instead of the value.
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

_MAX_PREPARED = 100  # claims, each with its own device
_CONCURRENCY = (1, 8)  # calls of a kubelet with one pod, and on a busy node


@dataclass(frozen=True)
class DriverBenchPlan:
    """The amount of work in a run of the benchmark."""

    kubernetes: str
    claims: int = 200
    rounds: int = 3
    idle: float = 20.0
    build: bool = True  # build peers that are not in the cache


def measure(plan: DriverBenchPlan, progress: Progress) -> Comparison:
    """Measure all drivers. They take turns in each round, so that other load on the machine affects all of them."""
    drivers = _measured_drivers(plan, progress)
    comparison = Comparison(drivers[0].title, {each.title: each.version for each in drivers}, plan.kubernetes)
    with start_bare_cluster(plan.kubernetes, progress) as cluster:
        with progress.step(f"{plan.claims} claims for each of {len(drivers)} drivers"):
            claims = {each.title: cluster.create_claims(each, plan.claims, _MAX_PREPARED) for each in drivers}
        for number, each in itertools.product(range(1, plan.rounds + 1), drivers):
            with progress.step(f"round {number} of {plan.rounds}: {each.title}"):
                _DriverRound(each, cluster, plan, claims[each.title], comparison).measure()
    return comparison


def _measured_drivers(plan: DriverBenchPlan, progress: Progress) -> list[MeasuredDriver]:
    lock = peers()
    makers = {"dra-example-kubeletplugin": example_driver, "dra-test-driver": upstream_driver}
    if plan.build:
        programs = ensure(lock, list(makers), progress=progress, sources=["build"])
    else:
        programs = {name: cached[0] for name, cached in inventory(lock).items() if cached}
    return [
        fake_driver(),
        *(make(programs[name], lock.program(name).version) for name, make in makers.items() if name in programs),
    ]


@dataclass
class _DriverRound:
    """The measurement of one driver in one round."""

    driver: MeasuredDriver
    cluster: BareCluster
    plan: DriverBenchPlan
    claims: Sequence[ClaimRef]
    comparison: Comparison

    def measure(self) -> None:
        """Measure the driver with one full slice of devices, and with a thousand devices."""
        self._measure_one_slice()
        if self.driver.title not in self.comparison.permanently_failed:
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
        """Prepare and unprepare all claims in batches, and check the driver's work outside of the measured time."""
        self.cluster.clear_device_status(self.claims)
        latencies: dict[str, list[float]] = {"prepare": [], "unprepare": []}
        for start in range(0, len(self.claims), _MAX_PREPARED):
            batch = self.claims[start : start + _MAX_PREPARED]
            prepared = kubelet.prepare(batch, concurrency)
            process.check_prepared(prepared.ids)
            unprepared = kubelet.unprepare(batch, concurrency)
            process.check_unprepared([claim.uid for claim in batch])
            latencies["prepare"] += prepared.milliseconds
            latencies["unprepare"] += unprepared.milliseconds
        for verb, values in latencies.items():
            self._note({f"{verb} p{rank}, {concurrency}{suffix}": percentile(values, rank) for rank in (50, 99)})

    def _note(self, values: dict[str, float]) -> None:
        for key, value in values.items():
            self.comparison.add(self.driver.title, key, value)

    @contextlib.contextmanager
    def _recording_failures(self, what: str, *, permanent: bool = False) -> Iterator[None]:
        """Record a failure of the driver as the reason for missing values. Other errors end the benchmark.

        `permanent` means that the driver would also fail in the next round.
        """
        try:
            yield
        except (DriverFailed, WaitTimeout) as failed:
            self.comparison.add_failure(self.driver.title, what, failed.what, permanent=permanent)

    @contextlib.contextmanager
    def _deleting_slices(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.cluster.delete_slices(self.driver)
