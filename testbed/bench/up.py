"""`dra-testbed bench up`: the duration of `up` and `down` with all their steps, and the memory of an idle testbed.

The peer is etcd with one API server, started in the same way in the same run: no `up` can be faster than that.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from testbed.bench.memory import pss_mib
from testbed.bench.statistics import Figure, figures
from testbed.binaries import ensure, lock_for
from testbed.bringup import bring_up, state, tear_down
from testbed.models.config import TestbedConfig
from testbed.progress import Progress, Silent
from testbed.providers.base import Artifacts, ClusterSpec
from testbed.providers.local import LocalProvider, creation
from testbed.waiting import Budget, NotYet, eventually

_IDLE = Budget("idle", 5, "the background work of a start ends")


def measure(config: TestbedConfig, rounds: int, progress: Progress) -> list[Figure]:
    """Bring up and tear down the peer, a testbed without a driver and one with the driver in turn; return all figures."""
    bare = replace(config, driver=None)
    plain, driven, memory = [], [], []
    for number in range(1, rounds + 1):
        with progress.step(f"round {number} of {rounds}"):
            peer = _api_server_alone(config)
            sample = _sample(bare, lambda: None)
            ratio = {"peer: etcd and API server alone": peer, "up without a driver / peer": sample["up"] / peer}
            plain.append(_named(sample, "without a driver") | ratio)
            driven.append(_named(_sample(config, lambda: memory.append(_measure_memory(config))), "with the driver"))
    found = figures(plain, "s", {"up, without a driver": 5, "down, without a driver": 2})
    found += figures(driven, "s", {"up, with the driver": 8, "down, with the driver": 2})
    return found + figures(memory, "MiB", {"memory, idle": 1100 + 200 * max(0, config.nodes - 2)})


def _api_server_alone(config: TestbedConfig) -> float:
    """Return the seconds until etcd and an API server are ready if nothing else runs on the host."""
    provider = LocalProvider()
    lock = lock_for(config.kubernetes)
    programs = ensure(lock, provider.programs(), progress=Silent())
    spec, artifacts = ClusterSpec(lock.kubernetes, nodes=1), Artifacts(programs)
    with tempfile.TemporaryDirectory(prefix="dra-testbed-bench-") as folder:
        cluster = Path(folder) / "cluster"
        began = time.monotonic()
        try:
            creation.wait_for_api_server(creation.start_control_plane(config.name, spec, artifacts, cluster))
            return time.monotonic() - began
        finally:
            provider.delete(config.name, cluster)


def _sample(config: TestbedConfig, meanwhile: Callable[[], None]) -> dict[str, float]:
    phases = Silent()
    began = time.monotonic()
    bring_up(config, phases, ephemeral=True)
    up = time.monotonic() - began
    try:
        meanwhile()
    finally:
        began = time.monotonic()
        tear_down(config.name, Silent())
        down = time.monotonic() - began
    return {"up": up, **{step.title: step.seconds for step in phases.steps}, "down": down}


def _named(sample: dict[str, float], what: str) -> dict[str, float]:
    return {f"{name}, {what}" if name in ("up", "down") else f"  {name}": seconds for name, seconds in sample.items()}


def _measure_memory(config: TestbedConfig) -> dict[str, float]:
    """Return the memory when it has not changed much for a few observations."""
    cluster = state.cluster_folder(config.name)
    inits = [int(path.read_text().split()[0]) for path in cluster.glob("**/pids/init")]
    observed = [0.0]

    def settled() -> float:
        now = pss_mib(inits)
        observed.append(now)
        if len(observed) < 4 or abs(now - observed[-3]) > 20:
            raise NotYet(f"{now:.0f} MiB and still changing")
        return now

    return {"memory, idle": eventually(settled, "the memory to stop changing", _IDLE)}
