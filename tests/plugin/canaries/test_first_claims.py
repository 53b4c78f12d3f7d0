"""If the driver can prepare no claim, the first requirement fails and the rest is blocked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.onboarding.checks.trials import Cause, FailedTrial
from testbed.plugin.canaries import first_claims
from testbed.plugin.canaries.first_claims import FirstClaims
from testbed.providers.base import Capability
from tests.plugin.conftest import Run

Judge = Callable[..., Run]
SUITE = """
@required(1)
def test_first(scenario):
    scenario.apply("basic/claim-by-name.yaml")
    scenario.pod("pod").should_run()

@required(2)
def test_second(scenario):
    scenario.apply("basic/claim-by-name.yaml")
    scenario.pod("pod").should_run()

@required(3, tier=WIRE)
def test_without_claims():
    assert True
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one-process", "workers"])
def test_only_the_first_requirement_fails(judge: Judge, workers: tuple[str, ...]) -> None:
    run = judge(SUITE, *workers, fault="no-pods-start", in_subprocess=bool(workers))
    assert sorted(filter(None, run.verdicts.values())) == ["blocked", "fail", "pass"]
    (failed,) = [each for each in run.report.requirements if each.verdict == "fail"]
    assert "no claim of the driver can be prepared: on node-" in failed.message
    assert failed.attempts == 1
    (blocked,) = [each for each in run.report.requirements if each.verdict == "blocked"]
    assert f"no claim of the driver can be prepared: see {failed.id}" in blocked.message
    assert run.result.ret == 1


def test_a_driver_that_prepares_claims_is_judged_by_each_requirement(judge: Judge) -> None:
    fails = SUITE.replace("should_run()", "should_succeed()")
    run = judge(fails)
    assert run.verdicts == {"T-001": "fail", "T-002": "fail", "T-003": "pass"}
    assert "no claim of the driver" not in run.output


def test_each_test_fails_if_the_number_of_failures_is_limited(judge: Judge) -> None:
    run = judge(SUITE, "--maxfail=9", fault="no-pods-start")
    assert run.verdicts == {"T-001": "fail", "T-002": "fail", "T-003": "pass"}


def test_what_an_earlier_run_found_blocks_nothing(judge: Judge, pytester: pytest.Pytester) -> None:
    judge(SUITE, fault="no-pods-start")
    later: Any = judge(SUITE)
    assert set(later.verdicts.values()) == {"pass"}


@pytest.mark.parametrize(
    ("trial", "is_blocked"),
    [
        (FailedTrial("gpu.example.com", "node-1", Cause.DRIVER, "refused"), True),
        (FailedTrial("gpu.example.com", "node-1", Cause.DRIVER, "metadata is not JSON", ran=True), False),
        (FailedTrial("gpu.example.com", "node-1", Cause.NO_DEVICE, "all are in use"), False),
        (FailedTrial("gpu.example.com", "node-1", Cause.ENVIRONMENT, "no disk"), False),
    ],
)
def test_only_what_the_driver_did_not_prepare_blocks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trial: FailedTrial, is_blocked: bool
) -> None:
    monkeypatch.setattr(first_claims, "try_devices", lambda *_: [trial])
    monkeypatch.setattr(first_claims, "_logs", lambda _world: ["  log of driver-x:"])
    able = SimpleNamespace(capabilities=frozenset({Capability.MAKE_OBJECTS}))
    world: Any = SimpleNamespace(cluster=able, nodes=frozenset({"node-1"}))
    assert bool(FirstClaims(lambda: world, tmp_path).try_after("CLAIM-001")) is is_blocked
    assert (tmp_path / first_claims.FILE).exists() is is_blocked
