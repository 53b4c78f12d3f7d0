"""A measured driver as a process on this host: its start, its memory and CPU time, and its CDI files. Used by driver.py."""

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

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # reads JSON too; the loader in C is faster
_PUBLISHED = Budget("published", 10, "a driver starts within a second")
_SETTLED = Budget("settled", 2, "a driver may finish its start in the background")
_GRACE = 5.0


@dataclass(frozen=True)
class DriverProcess:
    """A running driver, with the duration and the number of slice writes of its start."""

    driver: MeasuredDriver
    process: ProcessId
    environment: DriverEnvironment
    log: Path
    seconds: float = 0.0
    writes: int = 0

    @property
    def registration(self) -> Path:
        """Return the path of the registration socket."""
        sockets = [path for path in self.environment.registry.iterdir() if path.is_socket()]
        if len(sockets) != 1:
            raise DriverFailed(f"{self.driver.title} has {len(sockets)} registration sockets, expected one")
        return sockets[0]

    @property
    def resident_mib(self) -> float:
        """Return the resident memory (VmRSS) in MiB, including shared pages."""
        self.check_alive()
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024

    def idle_cpu_percent(self, seconds: float) -> float:
        """Return the CPU time without any calls, in percent of a core."""
        consistently(self.check_alive, "the driver to run", _SETTLED)
        began, before = time.monotonic(), self._cpu_seconds()
        consistently(self.check_alive, "the driver to run", Budget("idle", seconds, "includes periodic work"))
        return 100 * (self._cpu_seconds() - before) / (time.monotonic() - began)

    def check_alive(self) -> None:
        """Raise DriverFailed with the last line of the log if the driver has ended."""
        if not process.alive(self.process):
            raise DriverFailed(f"{self.driver.title} ended; its last log line: {_last_log_line(self.log)}")

    def cdi_names(self) -> set[str]:
        """Return all qualified device names in the driver's CDI files."""
        files = [path for path in self.environment.cdi.iterdir() if path.suffix in {".json", ".yaml"}]
        specs = [yaml.load(path.read_text(), _Loader) for path in files]  # noqa: S506 - both loaders are the safe ones
        return {f"{spec['kind']}={device['name']}" for spec in specs for device in spec["devices"]}

    def check_prepared(self, ids: dict[str, tuple[str, ...]]) -> None:
        """Raise DriverFailed unless each claim has CDI IDs and all of them are defined in CDI files."""
        defined = self.cdi_names()
        for uid, names in ids.items():
            if not names or not defined.issuperset(names):
                raise DriverFailed(
                    f"{self.driver.title} answered with CDI IDs {names} for claim {uid}, but no CDI file defines them"
                )

    def check_unprepared(self, uids: Iterable[str]) -> None:
        """Raise DriverFailed if CDI files still define devices of these claims."""
        left = [name for name in self.cdi_names() if any(uid in name for uid in uids)]
        if left:
            raise DriverFailed(f"{self.driver.title} did not remove CDI devices after unprepare: {left[:3]}")

    def _cpu_seconds(self) -> float:
        """Return the CPU time of all threads, including those that have ended."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def running_driver(
    driver: MeasuredDriver, cluster: BareCluster, environment: DriverEnvironment, devices: int, changed: int = 0
) -> Iterator[DriverProcess]:
    """Start a driver, wait until all its devices are published, and terminate it at the end. Its slices remain."""
    argv, env = driver.command(environment, devices, changed)
    log = environment.plugins / "log"
    # A DaemonSet mounts this folder. The upstream test driver does not create it.
    (environment.plugins / driver.name).mkdir(exist_ok=True)
    writes, old_versions = cluster.slice_writes(), {_version(each) for each in cluster.slices(driver)}
    began = time.perf_counter()
    started = DriverProcess(driver, process.start(process.kill_with_parent(argv), log=log, env=env), environment, log)

    def published() -> float:
        slices = cluster.slices(driver)
        started.check_alive()
        is_new = not changed or any(_version(each) not in old_versions for each in slices)
        count = count_published_devices(slices) if slices else 0
        if not slices or count != devices or not is_new:
            raise NotYet(f"{len(slices)} slices with {count} devices; its last log line: {_last_log_line(log)}")
        return time.perf_counter() - began

    try:
        seconds = eventually(published, f"{devices} devices of {driver.title}", _PUBLISHED, longest_pause=0.01)
        yield DriverProcess(driver, started.process, environment, log, seconds, cluster.slice_writes() - writes)
    finally:
        process.kill(started.process, grace=_GRACE)


def _version(slice_: Object) -> str:
    return str(slice_["metadata"]["resourceVersion"])


def _last_log_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return lines[-1][:400] if lines else "(no output)"
