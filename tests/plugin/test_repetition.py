"""A failed e2e test runs again alone before it is judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from testbed.conformance.events import read
from tests.plugin.example_suites import BAD

Judge = Callable[..., Any]
# Counts its attempts in a file, because a repetition may run in another process.
_COUNTED = """
import pathlib

def attempt(request):
    file = pathlib.Path(str(request.config.rootpath), "attempts")
    with file.open("a") as written:
        written.write("x")
    return len(file.read_text())

@required(1)
def test_it(scenario, request):
    scenario.apply("claims/two-cats.yaml")
    assert attempt(request) {passes}

@required(2)
def test_other(scenario):
    pass
"""
_SERIAL = """
from testbed.conformance import DISRUPTIVE

@required(9, tier=DISRUPTIVE)
def test_serial(scenario):
    assert {passes}
"""
_WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])


def _finished(run: Any) -> list[tuple[str, str]]:
    return [(each["id"], each["verdict"]) for each in read(run.folder) if each["event"] == "test-finished"]


@_WORKERS
def test_a_failure_that_passes_three_times_alone_is_flaky(judge: Judge, workers: tuple[str, ...]) -> None:
    run = judge(_COUNTED.format(passes="> 1") + _SERIAL.format(passes="True"), *workers, in_subprocess=bool(workers))
    assert run.verdicts == {"T-001": "flaky", "T-002": "pass", "T-009": "pass"}
    assert _finished(run)[2:] == [*[("T-001", "pass")] * 3, ("T-009", "pass")]
    assert "T-001 failed, will be repeated: expected" in run.output
    assert run.report.result == "incomplete"
    kept = run.folder / run.row("T-001").evidence
    for folder in (kept, kept / "repetition-1"):
        assert len(list(yaml.safe_load_all((folder / "pods.yaml").read_text()))) == 1
    assert (kept / "beside.txt").exists()


@_WORKERS
def test_one_more_failure_is_the_verdict(judge: Judge, workers: tuple[str, ...]) -> None:
    run = judge(
        _COUNTED.format(passes="in (2, 3)") + _SERIAL.format(passes="True"), *workers, in_subprocess=bool(workers)
    )
    assert run.verdicts == {"T-001": "fail", "T-002": "pass", "T-009": "pass"}
    assert [verdict for name, verdict in _finished(run) if name == "T-001"] == ["fail", "pass", "pass", "fail"]
    assert (run.report.result, run.result.ret) == ("failed", 1)


def test_a_test_that_always_fails_runs_twice_and_disruptive_tests_run_once(judge: Judge) -> None:
    run = judge(_COUNTED.format(passes="< 1") + _SERIAL.format(passes="False"))
    assert _finished(run) == [("T-001", "fail"), ("T-002", "pass"), ("T-001", "fail"), ("T-009", "fail")]
    assert run.row("T-001").evidence == "evidence/T-001"


def test_nothing_is_repeated_without_failures(judge: Judge) -> None:
    run = judge(_COUNTED.format(passes="> 0"))
    assert _finished(run) == [("T-001", "pass"), ("T-002", "pass")]
    assert run.report.result == "conformant"


@pytest.mark.parametrize("flag", ["-x", "--maxfail=2"])
def test_the_first_failure_is_the_verdict_with_x(judge: Judge, flag: str) -> None:
    run = judge(_COUNTED.format(passes="> 1"), flag)
    assert run.verdicts["T-001"] == "fail"
    assert _finished(run)[0] == ("T-001", "fail")
    assert [name for name, _ in _finished(run)].count("T-001") == 1


def test_the_names_of_tests_that_ran_beside_a_failure_are_kept(judge: Judge) -> None:
    slow = """
@required(5)
def test_beside(request):
    import pathlib, threading
    failed = pathlib.Path(str(request.config.rootpath), "attempts")
    for _ in range(200):
        if failed.exists():
            break
        threading.Event().wait(0.05)
    threading.Event().wait(1)
"""
    run = judge(slow + _COUNTED.format(passes="> 1"), "-n", "2", in_subprocess=True)
    assert "test_suite.py::test_beside" in (run.folder / run.row("T-001").evidence / "beside.txt").read_text()
    assert "beside the first failure ran: test_suite.py::test_beside" in run.row("T-001").message


def test_a_failure_is_printed_when_it_happens_with_its_likely_cause(judge: Judge) -> None:
    run = judge(BAD, fault="no-env")
    before, _, after = run.output.partition("= FAILURES")
    assert "T-002 failed, will be repeated: expected container container1 of pod pod-with-cats to see" in before
    assert "  likely cause: the driver added nothing to the container" in before
    assert "T-002 fail: expected container container1 of pod pod-with-cats to see" in before
    assert "  evidence: out/evidence/T-002" in before
    assert after
