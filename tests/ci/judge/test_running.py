"""A pair is run: the fault hits a real process while a program that stands for `dra-testbed run` runs a test and writes its report."""

from __future__ import annotations

import contextlib
import json
import subprocess  # noqa: TID251 - a process that the fault kills, which the test reaps itself
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ci.judge import command, running
from ci.judge.faults import ForeignSlices, Kill
from ci.judge.moments import Moment
from ci.judge.outcome import RIGHT, UNCLEAR, WRONG, Outcome
from ci.judge.pairs import JUDGED_RIGHT, NEVER_FAIL, NEVER_PASS, Pair
from testbed.errors import TestbedError
from testbed.process import ProcessId
from testbed.providers.base import Component

PAIR = Pair("etcd-killed", Kill("etcd"), {"A-001": NEVER_FAIL}, "Why.", Moment("A-001"))
# Writes its arguments, runs the test of A-001 for as long as process `pid` lives, at most a second, and writes a report with the verdict.
PROGRAM = """
import json, os, sys, time
from pathlib import Path
pid, verdict, words = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
report = Path(words[words.index("--report") + 1])
report.mkdir()
(report.parent / "words").write_text(json.dumps(words))
with (report / "events.jsonl").open("w") as log:
    log.write(json.dumps({"event": "test-started", "test": "a.py::test", "id": "A-001"}) + "\\n")
end = time.monotonic() + 1
while time.monotonic() < end and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
    time.sleep(0.01)
if verdict != "none":
    (report / "report.yaml").write_text(json.dumps({"requirements": [{"id": "A-001", "verdict": verdict}]}))
"""


class FakeKube:
    def __init__(self) -> None:
        self.objects: list[str] = []
        self.applied: list[str] = []

    def apply(self, each: dict[str, Any]) -> None:
        self.objects.append(each["metadata"]["name"])
        self.applied.append(each["metadata"]["name"])

    def delete(self, each: dict[str, Any]) -> None:
        self.objects.remove(each["metadata"]["name"])


@pytest.fixture
def etcd() -> Iterator[subprocess.Popen[bytes]]:
    started = subprocess.Popen(["sleep", "60"])
    yield started
    started.kill()
    started.wait()


@pytest.fixture
def target(etcd: subprocess.Popen[bytes]) -> Any:
    """Return a testbed with one component. `mutants` lists what its driver has been."""
    part = Component("control-plane/etcd", ProcessId.of(etcd.pid), True)
    mutants: list[str] = []

    def as_mutant(name: str) -> contextlib.AbstractContextManager[None]:
        mutants.append(name)
        return contextlib.nullcontext()

    testbed = SimpleNamespace(cluster=SimpleNamespace(components=lambda: [part]), kube=FakeKube())
    return SimpleNamespace(testbed=testbed, as_mutant=as_mutant, mutants=mutants)


def _judged(monkeypatch: pytest.MonkeyPatch, verdict: str, process: subprocess.Popen[bytes]) -> None:
    monkeypatch.setattr(running, "_RUN", [sys.executable, "-c", PROGRAM, str(process.pid), verdict])


@pytest.mark.parametrize(("verdict", "result"), [("error", RIGHT), ("fail", WRONG), ("none", UNCLEAR)])
def test_the_fault_hits_the_test_and_the_verdict_is_compared(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    target: Any,
    etcd: subprocess.Popen[bytes],
    verdict: str,
    result: str,
) -> None:
    _judged(monkeypatch, verdict, etcd)
    outcome = running.run_pair(target, PAIR, tmp_path)
    assert etcd.wait(5) == -9
    assert (outcome.pair, outcome.result, outcome.digest) == ("etcd-killed", result, PAIR.digest)
    assert target.mutants == ["control"]
    words = json.loads((tmp_path / "etcd-killed/words").read_text())
    assert words[words.index("-k") + 1] == "A-001"
    assert words[words.index("-n") + 1] == "0"


def test_the_events_of_an_earlier_run_are_not_read_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, target: Any, etcd: subprocess.Popen[bytes]
) -> None:
    earlier = tmp_path / "etcd-killed/report/events.jsonl"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("{" * 1000)
    _judged(monkeypatch, "error", etcd)
    assert running.run_pair(target, PAIR, tmp_path).result == RIGHT
    assert "{{" not in earlier.read_text()


def test_a_wrong_driver_is_installed_and_slices_of_another_exist_during_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, target: Any, etcd: subprocess.Popen[bytes]
) -> None:
    _judged(monkeypatch, "pass", etcd)
    pair = Pair("foreign-slices", ForeignSlices(), {"A-001": NEVER_PASS}, "Why.", driver="no-env")
    assert running.run_pair(target, pair, tmp_path).result == WRONG
    assert target.mutants == ["no-env"]
    assert len(target.testbed.kube.applied) == 2
    assert target.testbed.kube.objects == []
    assert etcd.poll() is None


def test_a_testbed_that_breaks_is_made_again_for_the_next_pair(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    did: list[str] = []

    class Shared:
        def usable(self) -> str:
            did.append("usable")
            return "a testbed"

        def remove(self) -> None:
            did.append("remove")

    def run(_: object, pair: Pair, __: Path) -> Outcome:
        if pair is PAIR:
            raise TestbedError("the driver does not come back\n  much more")
        return Outcome(pair.name, RIGHT)

    other = Pair("other", Kill("etcd"), {"A-001": JUDGED_RIGHT}, "Why.", Moment("A-001"))
    monkeypatch.setattr(running, "SharedTestbed", Shared)
    monkeypatch.setattr(running, "run_pair", run)
    first, second = running.judge([PAIR, other], tmp_path)
    assert (first.result, first.seen) == (UNCLEAR, "the testbed broke: the driver does not come back")
    assert second.result == RIGHT
    assert did == ["usable", "remove", "usable", "remove"]


def test_pairs_with_an_outcome_are_not_run_again_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def judge(pairs: list[Pair], _: Path) -> Iterator[Outcome]:
        for each in pairs:
            ran.append(each.name)
            yield Outcome(each.name, RIGHT, "A-001 error", 2.0, each.digest)

    monkeypatch.setattr(command, "judge", judge)
    command.run([PAIR], tmp_path, again=False)
    command.run([PAIR], tmp_path, again=False)
    assert ran == ["etcd-killed"]
    command.run([PAIR], tmp_path, again=True)
    assert ran == ["etcd-killed"] * 2
    assert command.show([PAIR], tmp_path) == 0
    changed = Pair(PAIR.name, PAIR.fault, {"A-001": JUDGED_RIGHT}, "Why.", PAIR.when)
    assert command.show([PAIR, changed], tmp_path) == 1
    assert "1 of 2 pairs are right" in capsys.readouterr().out
