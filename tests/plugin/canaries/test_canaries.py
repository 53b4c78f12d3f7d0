"""A component of the cluster that fails during a test is not the driver's failure: it is repaired, and the test is repeated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from testbed.conformance.events import read
from tests.fakes.cluster import FakeCluster

Judge = Callable[..., Any]
# The first attempts break the fake cluster, as a mutant of the judge does.
_BREAKS = """
from testbed import bringup
from testbed.providers.base import Capability as Able
TRIED = []

@required(1{tier})
def test_it(scenario):
    cluster = bringup.attach("fake").cluster
    object.__setattr__(cluster, "capabilities", frozenset({able}))
    TRIED.append(1)
    if len(TRIED) <= {times}:
        cluster.dead.append("control-plane/{component}")
    assert len(TRIED) > {fails}

@required(2)
def test_other(scenario):
    pass
"""
_ABLE = "[Able.MAKE_OBJECTS, Able.RESTART_CONTROL_PLANE]"


def _suite(times: int, fails: int = 9, component: str = "kube-scheduler", able: str = _ABLE, tier: str = "") -> str:
    return _BREAKS.format(times=times, fails=fails, component=component, able=able, tier=tier)


def _attempts(run: Any) -> list[tuple[str, str]]:
    done = [each for each in read(run.folder) if each["event"] == "test-finished" and each["id"] == "T-001"]
    return [(each["verdict"], each.get("component", "")) for each in done]


@pytest.mark.parametrize("tier", ["", ", tier=DISRUPTIVE"], ids=["e2e", "disruptive"])
def test_a_scheduler_that_died_is_restarted_and_the_test_is_repeated(judge: Judge, tier: str) -> None:
    imported = "from testbed.conformance import DISRUPTIVE\n" if tier else ""
    run = judge(imported + _suite(times=1, fails=1, tier=tier))
    assert _attempts(run) == [("error", "kube-scheduler"), ("pass", "")]
    assert run.verdicts == {"T-001": "pass", "T-002": "pass"}
    assert (run.report.result, run.result.ret) == ("conformant", 0)
    assert "T-001 failed, will be repeated: kube-scheduler failed during this test" in run.output
    seen = (run.folder / "evidence/T-001/components/seen.txt").read_text()
    assert seen == "kube-scheduler: control-plane/kube-scheduler does not run\n"


def test_a_test_runs_again_if_the_api_server_did_not_answer_for_a_while(judge: Judge) -> None:
    away = """
TRIED = []

@required(1)
def test_it(scenario):
    kube = scenario.world.kube
    TRIED.append(1)
    kube.down = len(TRIED) == 1
    try:
        kube.list("v1", "Pod")
    finally:
        kube.down = False
"""
    run = judge(away)
    assert _attempts(run) == [("error", "kube-apiserver"), ("pass", "")]
    assert run.report.result == "conformant"


def test_a_failure_after_an_interruption_is_a_failure(judge: Judge) -> None:
    run = judge(_suite(times=1))
    assert _attempts(run) == [("error", "kube-scheduler"), ("fail", ""), ("fail", "")]
    assert run.verdicts["T-001"] == "fail"


def test_a_component_that_fails_only_with_the_test_is_the_drivers_failure(judge: Judge) -> None:
    run = judge(_suite(times=9))
    assert _attempts(run) == [("error", "kube-scheduler"), ("fail", "kube-scheduler")]
    said = run.row("T-001").message
    assert "it failed in this test before (kube-scheduler), and not in" in said
    assert "blame: the driver" in said
    assert run.result.ret == 1


def test_a_component_that_fails_without_the_test_too_is_not_the_drivers_failure(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler is dead again each time when it is looked at for the second time after its restart."""
    for name in ("components", "restart_control_plane"):  # the suite below replaces them, in this process
        monkeypatch.setattr(FakeCluster, name, getattr(FakeCluster, name))
    dies = """
from tests.fakes.cluster import FakeCluster
LOOKS = []

def components(self):
    from testbed.providers.base import Component
    LOOKS.append(1)
    dead = self.dead or (["control-plane/kube-scheduler"] if self.restarted and len(self.restarted) != 1 and len(LOOKS) % 3 == 0 else [])
    return [Component(name, None, alive=False) for name in dead]

def restart(self, component):
    self.restarted.append(component)
    self.dead.clear()

FakeCluster.components = components
FakeCluster.restart_control_plane = restart
"""
    run = judge(dies + _suite(times=9))
    assert {verdict for verdict, _ in _attempts(run)} == {"error"}
    assert run.verdicts["T-001"] == "error"


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "worker"])
def test_the_run_stops_only_if_the_component_cannot_be_repaired(
    judge: Judge, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = "\nmade.cluster.dead.append('control-plane/kube-scheduler')\n"
    monkeypatch.setattr("tests.plugin.conftest._CONFTEST", _conftest() + dead)
    suite = "".join(f"@required({n})\ndef test_{n}(scenario):\n    assert {n} > 1\n\n" for n in range(1, 9))
    run = judge(suite, *workers, in_subprocess=True)
    assert run.verdicts["T-001"] == "error"
    assert run.verdicts["T-008"] is None
    assert "it could not be repaired: kube-scheduler cannot be restarted" in run.row("T-001").message
    assert (run.report.finished, run.report.result) == (False, "incomplete")


def _conftest() -> str:
    from tests.plugin import conftest  # noqa: PLC0415 - conftest is not imported twice

    return conftest._CONFTEST


def test_a_green_run_creates_no_canary(judge: Judge) -> None:
    suite = """
@required(1)
def test_it(scenario):
    pass

def test_none(world):
    assert not [name for _, name, _ in world.kube.applied if "canary" in str(name)]
"""
    judge(suite).result.assert_outcomes(passed=2)


def test_a_missing_image_is_reported_by_the_test_and_stops_no_run(judge: Judge) -> None:
    runs = "    scenario.apply('claims/two-cats.yaml')\n    scenario.pod('pod-with-cats').should_run()\n\n"
    suite = "".join(f"@required({n})\ndef test_{n}(scenario):\n{runs}" for n in (1, 2))
    run = judge(suite, fault="image-missing")
    assert run.verdicts == {"T-001": "error", "T-002": "error"}
    assert "the image is not on the node" in run.row("T-002").message


def test_canaries_are_deleted(judge: Judge) -> None:
    suite = """
@required(1)
def test_it(scenario):
    assert 0

def test_none(world):
    assert [name for kind, name, _ in world.kube.applied if kind == "Namespace" and "canary" in name]
    assert {kind for kind, *key in world.kube.objects if "canary" in str(key)} == {"ServiceAccount"}
"""
    judge(suite).result.assert_outcomes(failed=1, passed=1)
