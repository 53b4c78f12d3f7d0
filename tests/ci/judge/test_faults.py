"""Faults hit processes at their moment, once or in each attempt, and a freeze ends. The processes are real."""

from __future__ import annotations

import json
import os
import signal
import subprocess  # noqa: TID251 - processes that the test signals and reaps itself
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ci.judge.faults import Freeze, Kill, OnProcesses, thaw
from ci.judge.moments import POD_ENDS, POD_EXISTS, POD_RUNS, EventTail, Moment, pods_of
from testbed.process import ProcessId
from testbed.providers.base import Component
from testbed.waiting import Budget, eventually_true

START = {"event": "test-started", "test": "a.py::test", "id": "A-001"}
END = {"event": "test-finished", "test": "a.py::test", "id": "A-001"}
A = Moment("A-001")


def pod(namespace: str = "dra-a-001-0f0f0f", phase: str = "Pending", **metadata: str) -> dict[str, Any]:
    return {"metadata": {"namespace": namespace, **metadata}, "status": {"phase": phase}}


class Cluster:
    """Components that are `sleep` processes, and a clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pods: list[dict[str, Any]] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.names: list[str] = []

    def start(self, name: str) -> subprocess.Popen[bytes]:
        started = subprocess.Popen(["sleep", "60"])
        self.processes.append(started)
        self.names.append(name)
        return started

    def components(self) -> list[Component]:
        found = zip(self.names, self.processes, strict=True)
        return [Component(name, ProcessId.of(each.pid), each.poll() is None) for name, each in found]

    def inject(self, fault: Kill | Freeze, moment: Moment = A) -> OnProcesses:
        return OnProcesses(fault, moment, self.components, lambda: self.pods, lambda: self.now)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    for each in made.processes:
        each.kill()
        each.wait()


def state(pid: int) -> str:
    """Return the state of a process, as `ps` shows it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_component_is_killed_on_all_machines_when_the_test_runs(cluster: Cluster) -> None:
    kubelets = [cluster.start("node-1/kubelet"), cluster.start("node-2/kubelet")]
    other = cluster.start("control-plane/not-a-kubelet")
    injection = cluster.inject(Kill("kubelet"))

    injection.observe([{"event": "run-started"}])
    assert not injection.happened
    assert all(each.poll() is None for each in kubelets)

    injection.observe([START])
    assert injection.happened
    assert [each.wait(5) for each in kubelets] == [-9, -9]
    assert other.poll() is None


def test_a_test_that_has_ended_is_not_hit(cluster: Cluster) -> None:
    injection = cluster.inject(Kill("etcd"))
    etcd = cluster.start("control-plane/etcd")
    injection.observe([START, END])
    assert not injection.happened
    assert etcd.poll() is None


def test_a_repetition_of_the_test_is_not_hit_again(cluster: Cluster) -> None:
    cluster.start("control-plane/etcd")
    injection = cluster.inject(Kill("etcd"))
    injection.observe([START])
    repaired = cluster.start("control-plane/etcd")
    injection.observe([END, START])
    assert repaired.poll() is None


def test_a_component_that_does_not_run_is_not_hit(cluster: Cluster) -> None:
    injection = cluster.inject(Kill("etcd"))
    injection.observe([START])
    assert not injection.happened


def test_a_freeze_ends_by_itself(cluster: Cluster) -> None:
    scheduler = cluster.start("control-plane/kube-scheduler")
    injection = cluster.inject(Freeze("kube-scheduler", 5))
    injection.observe([START])
    _wait_until(lambda: state(scheduler.pid) == "T")
    cluster.now = 4.9
    injection.observe([])
    _wait_until(lambda: state(scheduler.pid) == "T")
    cluster.now = 5.0
    injection.observe([])
    _wait_until(lambda: state(scheduler.pid) != "T")
    injection.observe([])
    _wait_until(lambda: state(scheduler.pid) != "T")


def test_a_freeze_ends_with_the_run_and_a_component_killed_meanwhile_is_no_problem(cluster: Cluster) -> None:
    one, other = cluster.start("node-1/kubelet"), cluster.start("node-2/kubelet")
    injection = cluster.inject(Freeze("kubelet", 500))
    injection.observe([START])
    one.kill()
    one.wait()
    injection.lift()
    _wait_until(lambda: state(other.pid) != "T")


@pytest.mark.parametrize(
    ("moment", "found"),
    [
        (POD_EXISTS, pod()),
        (POD_RUNS, pod(phase="Running")),
        (POD_ENDS, pod(deletionTimestamp="2026-01-01T00:00:00Z")),
    ],
)
def test_a_moment_can_depend_on_the_pods_of_the_test(cluster: Cluster, moment: str, found: dict[str, Any]) -> None:
    cluster.start("control-plane/etcd")
    injection = cluster.inject(Kill("etcd"), Moment("A-001", moment))
    cluster.pods = [{**found, "metadata": {**found["metadata"], "namespace": "dra-a-0011-0f0f0f"}}]
    injection.observe([START])
    assert not injection.happened
    cluster.pods = [found]
    injection.observe([])
    assert injection.happened


def test_pods_of_other_tests_are_others() -> None:
    mine = pod("dra-claim-001-abcdef")
    assert pods_of("CLAIM-001", [mine, pod("dra-claim-0010-abcdef"), pod("kube-system")]) == [mine]


def test_events_are_read_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    tail = EventTail(file)
    assert tail.new() == []
    file.write_text(json.dumps(START) + "\n" + '{"event": "te')
    assert tail.new() == [START]
    with file.open("a") as log:
        log.write('st-finished"}\n')
    assert tail.new() == [{"event": "test-finished"}]
    assert tail.new() == []


def test_a_log_that_is_written_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"event": "testbed-wanted", "much": "more"}\n')
    tail = EventTail(file)
    tail.new()
    file.write_text('{"event": "a"}\n')
    assert tail.new() == [{"event": "a"}]
    file.unlink()
    assert tail.new() == []
    file.write_text('{"event": "b"}\n')
    assert tail.new() == [{"event": "b"}]
    file.write_text('{"event": "longer than before"}\n{"event": "c"}\n')
    assert tail.new() == [{"event": "longer than before"}, {"event": "c"}]


def test_the_nsenter_that_started_a_frozen_process_continues_too() -> None:
    """It stops itself when its child stops."""
    nsenter = subprocess.Popen(["nsenter", "--pid=/proc/self/ns/pid", "--", "sleep", "60"])
    try:
        child = _child_of(nsenter)
        os.kill(child, signal.SIGSTOP)
        _wait_until(lambda: state(nsenter.pid) == "T")
        thaw(child)
        _wait_until(lambda: "T" not in (state(nsenter.pid), state(child)))
    finally:
        nsenter.kill()
        nsenter.wait()


def _child_of(nsenter: subprocess.Popen[bytes]) -> int:
    children = Path(f"/proc/{nsenter.pid}/task/{nsenter.pid}/children")
    _wait_until(lambda: nsenter.poll() is not None or bool(children.read_text()))
    if nsenter.poll() is not None:
        pytest.skip("this user may not enter namespaces")
    return int(children.read_text())


def _wait_until(met: Callable[[], bool]) -> None:
    assert eventually_true(met, Budget("it is so", 5, "signals take effect at once"))
