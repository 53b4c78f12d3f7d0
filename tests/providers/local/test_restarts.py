"""Restarts of components of a local cluster's control plane, with processes that are not theirs."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from testbed import process
from testbed.providers.local.cluster import LocalCluster
from testbed.providers.local.layout import Layout, load_process_id, save_process_id
from testbed.waiting import Budget, eventually_true


def test_a_component_of_the_control_plane_that_does_not_answer_is_killed_and_started(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.make()
    stopped = process.start(["sleep", "60"], log=layout.log("old"))
    save_process_id(layout.control_plane, "kube-scheduler", stopped)
    os.kill(stopped.pid, signal.SIGSTOP)
    assert eventually_true(lambda: process.is_stopped(stopped), Budget("stopped", 10, "the kernel stops it soon"))
    cluster = LocalCluster("c", layout, _settings(), ())
    started: list[str] = []

    def start(argv: list[str], log: Path) -> process.ProcessId:
        started.append(f"{argv[0]} {log.name}")
        return stopped

    object.__setattr__(cluster, "machine", lambda: SimpleNamespace(start=start))

    assert [(each.name, each.alive) for each in cluster.components()] == [("control-plane/kube-scheduler", False)]
    cluster.restart_control_plane("kube-scheduler")

    assert not process.alive(stopped)
    assert started == ["/bin/scheduler kube-scheduler.log"]
    assert load_process_id(layout.control_plane, "kube-scheduler") == stopped


def _settings() -> Any:
    programs = {"kube-scheduler": Path("/bin/scheduler")}
    spec = SimpleNamespace(feature_gates={}, gates_unknown_to_scheduler=frozenset())
    return SimpleNamespace(artifacts=SimpleNamespace(programs=programs), spec=spec, pki=Path("/pki"))
