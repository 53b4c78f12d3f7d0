"""A driver that runs as a plain process while it is measured: from its start until its slices are there, what it weighs, what it leaves."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed import process
from testbed.bench.bare_cluster import BareCluster, count_published_devices
from testbed.bench.measured_drivers import DriverEnvironment, MeasuredDriver
from testbed.errors import DriverFailed
from testbed.kube.client import Object
from testbed.process import ProcessId
from testbed.waiting import Budget, NotYet, consistently, eventually

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # JSON is YAML too, and the C one is quick
_PUBLISHED = Budget("published", 10, "a driver that starts needs a second")
_SETTLED = Budget("settled", 2, "what a start leaves for later is no idleness")
_GRACE = 5.0


@dataclass(frozen=True)
class DriverProcess:
    """A driver at work, and what its start took."""

    driver: MeasuredDriver
    process: ProcessId
    environment: DriverEnvironment
    log: Path
    seconds: float = 0.0
    writes: int = 0

    @property
    def registration(self) -> Path:
        """The socket that the kubelet would find."""
        found = [path for path in self.environment.registry.iterdir() if path.is_socket()]
        if len(found) != 1:
            raise DriverFailed(f"{self.driver.title} has {len(found)} registration sockets")
        return found[0]

    @property
    def resident_mib(self) -> float:
        """MiB of memory that is resident (VmRSS), shared pages included."""
        self.check_alive()
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024

    def idle_cpu_percent(self, seconds: float) -> float:
        """Percent of a core that it takes while nobody asks for anything."""
        consistently(self.check_alive, "the driver to live", _SETTLED)
        began, before = time.monotonic(), self._cpu()
        consistently(
            self.check_alive, "the driver to live", Budget("idle", seconds, "long enough for what is periodic")
        )
        return 100 * (self._cpu() - before) / (time.monotonic() - began)

    def check_alive(self) -> None:
        """A driver that ended has failed; its last words say why."""
        if not process.alive(self.process):
            raise DriverFailed(f"{self.driver.title} ended: {_last_log_line(self.log)}")

    def cdi_names(self) -> set[str]:
        """All qualified names that its CDI files define."""
        files = [path for path in self.environment.cdi.iterdir() if path.suffix in {".json", ".yaml"}]
        specs = [yaml.load(path.read_text(), _Loader) for path in files]  # noqa: S506 - both loaders are the safe ones
        return {f"{spec['kind']}={device['name']}" for spec in specs for device in spec["devices"]}

    def check_prepared(self, ids: dict[str, tuple[str, ...]]) -> None:
        """Each answer names CDI devices, and each of them is in a file."""
        defined = self.cdi_names()
        for uid, names in ids.items():
            if not names or not defined.issuperset(names):
                raise DriverFailed(
                    f"{self.driver.title} answered {names} for claim {uid}, and no CDI file says what that is"
                )

    def check_unprepared(self, uids: Iterable[str]) -> None:
        """Nothing of these claims is left."""
        left = [name for name in self.cdi_names() if any(uid in name for uid in uids)]
        if left:
            raise DriverFailed(f"{self.driver.title} left CDI devices behind: {left[:3]}")

    def _cpu(self) -> float:
        """Seconds on a CPU, of all threads, those that have ended included."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def running_driver(
    driver: MeasuredDriver, cluster: BareCluster, environment: DriverEnvironment, devices: int, changed: int = 0
) -> Iterator[DriverProcess]:
    """Start a driver, wait until all its devices are published, and end it. Its slices stay."""
    argv, env = driver.command(environment, devices, changed)
    log = environment.plugins / "log"
    (environment.plugins / driver.name).mkdir(
        exist_ok=True
    )  # a DaemonSet mounts it; the upstream test driver does not make it
    before, was_there = cluster.writes(), {_version(each) for each in cluster.slices(driver)}
    began = time.perf_counter()
    started = DriverProcess(driver, process.start(process.kill_with_parent(argv), log=log, env=env), environment, log)

    def published() -> float:
        slices = cluster.slices(driver)
        started.check_alive()
        is_new = not changed or any(_version(each) not in was_there for each in slices)
        if not slices or count_published_devices(slices) != devices or not is_new:
            raise NotYet(
                f"{len(slices)} slices with {count_published_devices(slices) if slices else 0} devices; its log ends: {_last_log_line(log)}"
            )
        return time.perf_counter() - began

    try:
        seconds = eventually(published, f"{devices} devices of {driver.title}", _PUBLISHED, longest_pause=0.01)
        yield DriverProcess(driver, started.process, environment, log, seconds, cluster.writes() - before)
    finally:
        process.kill(started.process, grace=_GRACE)


def _version(slice_: Object) -> str:
    return str(slice_["metadata"]["resourceVersion"])


def _last_log_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return lines[-1][:400] if lines else "(it said nothing)"
