"""`bench suites` with real scenarios on a cluster in memory, and with fake runs of the suites."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.bench import suites
from testbed.errors import TestbedError
from testbed.models.config import TestbedConfig
from testbed.models.report import DriverConformanceReport
from testbed.models.requirement_enums import Tier
from testbed.models.run_request import RunRequest
from testbed.progress import Progress
from testbed.reporting import report as reports
from tests.fakes import cluster


def _report(verdict: str) -> DriverConformanceReport:
    row = {"id": "T-001", "sentence": "It works.", "level": "MUST", "tier": "e2e", "source": "here", "tests": ["a"]}
    began = {
        "event": "run-started",
        "time": 1.0,
        "generated": {"at": "2026-01-01T00:00:00+00:00", "suite": "1", "catalogue": "c", "python": "3", "pytest": "9"},
        "subject": {"driver": "d", "driver_file": "f", "digest": "x"},
        "patience": 1.0,
        "profile": "full",
        "environment": {
            "testbed": "t",
            "provider": "local",
            "kubernetes": "1.37",
            "nodes": 2,
            "runtime": "r",
            "feature_gates": {},
            "hardware": "synthetic",
        },
    }
    ended = {"test": "a", "id": "T-001", "verdict": verdict, "seconds": 2.5, "message": "", "evidence": ""}
    return reports.build(
        [
            began,
            {"event": "selected", "time": 1.0, "requirements": [row]},
            {"event": "test-finished", "time": 2.0, **ended},
            {"event": "run-finished", "time": 3.0},
        ]
    )


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int | str]:
    """Fake the testbed and the runs of the suites; return the workers of each run."""
    runs: list[int | str] = []

    def run(request: RunRequest, *, quiet: bool) -> DriverConformanceReport:
        assert quiet
        runs.append("disruptive" if Tier.DISRUPTIVE in request.tiers else request.workers)
        return _report("pass")

    monkeypatch.setattr(suites, "bring_up", lambda *_, **__: cluster.make())
    monkeypatch.setattr(suites, "tear_down", lambda *_: None)
    monkeypatch.setattr(suites, "run_suites", run)
    return runs


def test_one_and_two_workers_are_measured_in_alternating_order(runs: list[int | str]) -> None:
    found = {each.name: each for each in suites.measure(TestbedConfig(driver=Path("d")), 2, "full", Progress())}
    assert runs == ["auto", "disruptive", 0, 2, "auto", "disruptive", 2, 0]
    assert found["two workers / one"].bound == 0.65
    assert found["up, suites and down, without disruptive tests"].bound == 360
    assert found["disruptive tests"].bound == 300
    assert found["  T-001"].values == (2.5, 2.5)
    assert found["scenario without pods"].median < 1
    assert len(found["pod with a claim, minus pod without"].values) == 2


def test_core_has_its_own_bound(runs: list[int | str]) -> None:
    found = {each.name: each for each in suites.measure(TestbedConfig(driver=Path("d")), 1, "core", Progress())}
    assert runs == ["auto", "disruptive", 0, 2]
    assert found["up, suites and down, without disruptive tests"].bound == 125


def test_smoke_has_its_own_bound_and_no_disruptive_tests(runs: list[int | str]) -> None:
    found = {each.name: each for each in suites.measure(TestbedConfig(driver=Path("d")), 1, "smoke", Progress())}
    assert runs == ["auto", 0, 2]
    assert found["up, suites and down, without disruptive tests"].bound == 90
    assert "disruptive tests" not in found


def test_suites_that_fail_are_not_measured(runs: list[int | str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "run_suites", lambda *_, **__: _report("fail"))
    with pytest.raises(TestbedError, match="T-001: fail"):
        suites.measure(TestbedConfig(driver=Path("d")), 1, "full", Progress())
    assert runs == []
