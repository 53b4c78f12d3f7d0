"""`dra-testbed bench suites`: the duration of the suites with different numbers of workers, and the overhead of scenarios and claims.

Peers are measured in the same round: two workers and one, a pod with a claim and a pod without. Disruptive tests always run one at a
time, so they have their own figure.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from testbed import folders
from testbed.bench.statistics import Figure, figures
from testbed.bringup import Testbed, bring_up, tear_down
from testbed.conformance import catalogue, profiles, report_folder
from testbed.errors import TestbedError, UsageError
from testbed.images.basics import WORKLOAD
from testbed.kube.client import Object
from testbed.models.config import TestbedConfig
from testbed.models.report import DriverConformanceReport
from testbed.models.requirement_enums import Result, Tier
from testbed.models.run_request import RunRequest
from testbed.progress import Progress, Silent
from testbed.runs.pytest_process import run_suites
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import RESOURCE, World

T = TypeVar("T")

_PODS = 5  # a kubelet syncs its pods once per second, so the duration of a single start varies
_SLEEP = ["sh", "-c", "trap exit TERM; sleep infinity & wait"]
_SLOWEST = 10
_PARALLEL_TIERS, _SERIAL_TIERS = (Tier.STATIC, Tier.E2E), (Tier.DISRUPTIVE,)
_WHOLE, _DISRUPTIVE, _RATIO = "up, suites and down, without disruptive tests", "disruptive tests", "two workers / one"
_OVERHEAD, _CLAIM = "scenario without pods", "pod with a claim, minus pod without"
_BOUNDS = {_DISRUPTIVE: 300, _RATIO: 0.65, _OVERHEAD: 0.15, _CLAIM: 0.15}
_WHOLE_BOUNDS = {profiles.FULL: 360, profiles.CORE: 125, profiles.SMOKE: 90}


def measure(config: TestbedConfig, rounds: int, profile: str, progress: Progress) -> list[Figure]:
    """Measure each round on a new testbed; the figures of the slowest tests come last."""
    bounds = {**_BOUNDS, _WHOLE: _WHOLE_BOUNDS[profiles.profile(profile).name]}
    samples, tests = [], []
    for number in range(1, rounds + 1):
        with progress.step(f"round {number} of {rounds}"):
            sample, seconds = _round(config, profile, two_first=number % 2 == 0)
            samples.append(sample)
            tests.append(seconds)
    slowest = sorted(tests[0], key=lambda name: -statistics.median(each.get(name, 0) for each in tests))[:_SLOWEST]
    result = [replace(each, unit="") if each.name == _RATIO else each for each in figures(samples, "s", bounds)]
    return result + [Figure(f"  {name}", "s", tuple(each[name] for each in tests if name in each)) for name in slowest]


def _round(config: TestbedConfig, profile: str, *, two_first: bool) -> tuple[dict[str, float], dict[str, float]]:
    testbed, up = _timed(lambda: bring_up(config, Silent(), ephemeral=True))
    try:
        overheads = _measure_pods(testbed)
        _, usual = _timed(lambda: _run_suites(testbed, profile, _PARALLEL_TIERS, "auto"))
        disruptive = (
            {_DISRUPTIVE: _timed(lambda: _run_suites(testbed, profile, _SERIAL_TIERS, 0))[1]}
            if _has_disruptive(profile)
            else {}
        )
        runs = {}
        for workers in (2, 0) if two_first else (0, 2):
            runs[workers] = _timed(lambda workers=workers: _run_suites(testbed, profile, _PARALLEL_TIERS, workers))  # type: ignore[misc]  # bound now
    finally:
        _, down = _timed(lambda: tear_down(config.name, Silent()))
    (report, one), (_, two) = runs[0], runs[2]
    sample = {
        _WHOLE: up + usual + down,
        **disruptive,
        "suites, workers as in `run`": usual,
        "suites, one worker": one,
        "suites, two workers": two,
        _RATIO: two / one,
        **overheads,
    }
    return sample, {row.id: row.seconds for row in report.requirements if row.attempts}


def _has_disruptive(profile: str) -> bool:
    entries, selected = catalogue.read([folders.data("suites")]).entries, profiles.profile(profile)
    return any(selected.has(each.requirement.id) and each.requirement.tier in _SERIAL_TIERS for each in entries)


def _run_suites(
    testbed: Testbed, profile: str, tiers: tuple[Tier, ...], workers: int | Literal["auto"]
) -> DriverConformanceReport:
    with tempfile.TemporaryDirectory(prefix="dra-testbed-bench-") as folder:
        into = Path(folder)
        request = RunRequest(testbed=testbed.name, report=into, tiers=tiers, profile=profile, workers=workers)
        with report_folder.reserve(into):
            report = run_suites(request, quiet=True)
    if report.result not in (Result.CONFORMANT, Result.PARTIAL):
        reasons = "; ".join(report.reasons)
        raise TestbedError(
            f"cannot measure the suites, because their result is {report.result}: {reasons}", hint="dra-testbed run"
        )
    return report


def _measure_pods(testbed: Testbed) -> dict[str, float]:
    """Return medians over a few scenarios without a pod, with a pod, and with a pod that has a claim."""
    if testbed.driver_file is None:
        raise UsageError("the suites need a driver", hint="leave out --driver none")
    image = testbed.config.images.workload or WORKLOAD.reference
    world = World(
        testbed.owner, testbed.kube, testbed.driver_file, folders.data("manifests") / "suites", image, "bench"
    )
    empty, without, with_claim = [], [], []
    for _ in range(_PODS):
        empty.append(_timed(lambda: _create_claim(world))[1])
        without.append(_start_pod(world, with_claim=False))
        with_claim.append(_start_pod(world, with_claim=True))
    return {
        _OVERHEAD: statistics.median(empty),
        _CLAIM: statistics.median(with_claim) - statistics.median(without),
    }


def _create_claim(world: World) -> None:
    with new_scenario(world, "BENCH") as scenario:
        scenario.ledger.apply(_claim(world, scenario.namespace))


def _start_pod(world: World, *, with_claim: bool) -> float:
    """Return the seconds from the first API request until a pod runs."""
    with new_scenario(world, "BENCH") as scenario:
        began = time.monotonic()
        if with_claim:
            scenario.ledger.apply(_claim(world, scenario.namespace))
        scenario.ledger.apply(_pod(world, scenario.namespace, with_claim=with_claim))
        scenario.pod("pod").should_run()
        return time.monotonic() - began


def _claim(world: World, namespace: str) -> Object:
    request = {"name": "device", "exactly": {"deviceClassName": world.driver_file.device_class}}
    metadata = {"name": "device", "namespace": namespace}
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {"requests": [request]}},
    }


def _pod(world: World, namespace: str, *, with_claim: bool) -> Object:
    container: dict[str, Any] = {
        "name": "main",
        "image": world.workload_image,
        "command": _SLEEP,
    }
    spec: Object = {"terminationGracePeriodSeconds": 5, "containers": [container]}
    if with_claim:
        container["resources"] = {"claims": [{"name": "device"}]}
        spec["resourceClaims"] = [{"name": "device", "resourceClaimName": "device"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "namespace": namespace}, "spec": spec}


def _timed(what: Callable[[], T]) -> tuple[T, float]:
    began = time.monotonic()
    return what(), time.monotonic() - began
