"""The locks of sessions on a testbed, and the objects that a killed session left."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from testbed import process
from testbed.bringup import sessions, state, sweeping
from testbed.bringup.state import Phase, Record
from testbed.bringup.testbeds import Testbed
from testbed.drivers.changed_daemonsets import UNDO
from testbed.drivers.releases import Releases, replace_by_previous
from testbed.errors import DriverFailed, TestbedError, WaitTimeout
from testbed.kube.ownership import PROCESS
from testbed.progress import Progress, Silent
from testbed.providers.base import Capability
from testbed.waiting import Budget, eventually_true, set_patience
from tests.fakes import cluster
from tests.fakes.kube import FakeKube

SOON = Budget("soon", 20, "a Python starts")


@pytest.fixture
def testbed(tmp_path: Path) -> Testbed:
    return cast("Testbed", dataclasses.replace(cluster.make(), folder=tmp_path))


def _kube(testbed: Testbed) -> FakeKube:
    return cast("FakeKube", testbed.kube)


def _left_by(testbed: Testbed, process: str, kind: str = "Namespace", owner: Any = None) -> str:
    labels = (owner or testbed.owner).mark({"metadata": {}}, **{PROCESS: process})["metadata"]["labels"]
    name = f"dra-t-001-{process}"
    _kube(testbed).put(kind, name, metadata={"labels": labels})
    return name


def _killed(folder: Path, run: str) -> None:
    """Leave the lock of a session that did not clean up."""
    with sessions.session_lock(folder, run):
        pass


def test_objects_of_a_killed_session_are_deleted_and_its_lock_is_removed(testbed: Testbed) -> None:
    _killed(testbed.folder, "aaaa")
    left = [_left_by(testbed, "aaaa-main"), _left_by(testbed, "aaaa-gw0", "DeviceClass")]

    assert sorted(sessions.clean_up_killed_sessions(testbed)) == sorted(left)
    assert {name for _, _, name in _kube(testbed).objects}.isdisjoint(left)
    assert sessions.killed_sessions(testbed.folder) == []


def test_objects_of_running_and_unknown_sessions_are_kept(testbed: Testbed) -> None:
    _killed(testbed.folder, "aaaa")
    elsewhere = dataclasses.replace(testbed.owner, identity="bbbb")
    kept = [_left_by(testbed, "cccc-main"), _left_by(testbed, "dddd-main"), _left_by(testbed, "eeee-main")]
    _left_by(testbed, "aaaa-gw1", owner=elsewhere)  # the same session ID on another testbed
    far = testbed.folder / f"sessions/eeee@{socket.gethostname()}-2"
    far.touch()

    with sessions.session_lock(testbed.folder, "dddd"):
        assert sessions.clean_up_killed_sessions(testbed) == []
    assert {"dra-t-001-aaaa-gw1", *kept} <= {name for _, _, name in _kube(testbed).objects}
    assert far.exists(), "a lock of another host cannot be checked"


def test_a_driver_is_started_again_if_a_killed_session_stopped_it_and_not_if_a_running_one_did(
    testbed: Testbed,
) -> None:
    _kube(testbed).react = lambda _: None
    for name in ("dead", "live"):
        back = {"template": {"spec": {"affinity": None}}}
        undo = json.dumps({"testbed": testbed.owner.identity, "process": f"{name}-main", "spec": back})
        spec: Any = {"template": {"spec": {"affinity": {"nodeAffinity": {}}}}}
        _kube(testbed).put("DaemonSet", name, metadata={"annotations": {UNDO: undo}}, spec=spec)
    _killed(testbed.folder, "dead")
    with sessions.session_lock(testbed.folder, "live"):
        sessions.clean_up_killed_sessions(testbed)
    changed = {name: _kube(testbed).objects["DaemonSet", "default", name]["spec"] for name in ("dead", "live")}
    assert "affinity" not in changed["dead"]["template"]["spec"]
    assert "affinity" in changed["live"]["template"]["spec"]


@pytest.mark.parametrize(("process", "left"), [("live-main", {"old"}), ("dead-main", {"new"})])
def test_this_release_is_installed_again_if_a_killed_session_left_the_previous_one(
    testbed: Testbed, process: str, left: set[str]
) -> None:
    new, old = ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in ("new", "old"))
    Releases("gpu.dra-testbed.example", [new], [old]).write(testbed.folder)
    replace_by_previous(testbed.kube, testbed.owner, testbed.folder, process)
    _killed(testbed.folder, "dead")
    set_patience(0.001)
    no_driver_here = contextlib.suppress(WaitTimeout, DriverFailed)
    with sessions.session_lock(testbed.folder, "live"), no_driver_here:
        sessions.clean_up_killed_sessions(testbed)
    set_patience(1)
    assert {name for kind, _, name in _kube(testbed).objects if kind == "ConfigMap"} == left


def test_a_session_that_cleaned_up_is_not_a_killed_one(testbed: Testbed) -> None:
    with sessions.session_lock(testbed.folder, "aaaa"):
        assert sessions.killed_sessions(testbed.folder) == []
        sessions.discard_lock(testbed.folder, "aaaa")
    assert sessions.killed_sessions(testbed.folder) == []


def test_the_session_of_a_killed_process_is_a_killed_one(tmp_path: Path) -> None:
    code = (
        "import pathlib, signal\nfrom testbed.bringup import sessions\n"
        f"with sessions.session_lock(pathlib.Path({str(tmp_path)!r}), 'aaaa'):\n    print('.', flush=True)\n    signal.pause()\n"
    )
    log = tmp_path / "log"
    alive = process.start([sys.executable, "-c", code], log=log)
    try:
        assert eventually_true(lambda: log.read_text() == ".\n", SOON)
        assert sessions.killed_sessions(tmp_path) == []
    finally:
        process.kill(alive)
    assert sessions.killed_sessions(tmp_path) == ["aaaa"]


def test_objects_that_are_not_deleted_are_named_with_their_claims_and_devices(testbed: Testbed) -> None:
    _killed(testbed.folder, "aaaa")
    namespace, kube = _left_by(testbed, "aaaa-main"), _kube(testbed)
    kube.finalizers[namespace] = 1
    result = {"driver": cluster.DRIVER, "pool": "node-1", "device": "gpu-0"}
    kube.put("ResourceClaim", "claim", namespace, status={"allocation": {"devices": {"results": [result]}}})
    kube.put("Pod", "pod", namespace, spec={"nodeName": "node-1"}, status={"phase": "Running"})

    set_patience(0.001)
    try:
        with pytest.raises(TestbedError, match="on testbed fake are not deleted, and may hold devices") as stuck:
            sessions.clean_up_killed_sessions(testbed)
    finally:
        set_patience(1.0)
    assert f"namespace {namespace} with pod pod (Running on node-1), claim claim (holds node-1/gpu-0)" in str(
        stuck.value
    )
    assert sessions.killed_sessions(testbed.folder) == ["aaaa"], "the next session tries again"


def test_without_the_ability_to_create_objects_none_are_searched(testbed: Testbed) -> None:
    _killed(testbed.folder, "aaaa")
    _kube(testbed).down = True
    able = testbed.cluster.capabilities - {Capability.MAKE_OBJECTS}
    blind = dataclasses.replace(testbed, cluster=dataclasses.replace(cast("Any", testbed.cluster), capabilities=able))

    assert sessions.clean_up_killed_sessions(blind) == []


def test_a_session_works_without_write_access_to_the_folder(tmp_path: Path) -> None:
    with sessions.session_lock(tmp_path / "not-there", "aaaa"):
        assert sessions.killed_sessions(tmp_path / "not-there") == []


@pytest.mark.parametrize(("phase", "removed"), [(Phase.READY, True), (Phase.DELETING, False)])
def test_sweep_deletes_objects_of_killed_sessions_on_testbeds_that_are_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, testbed: Testbed, phase: Phase, removed: bool
) -> None:
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path))
    monkeypatch.setattr(sweeping, "PROVIDERS", {})
    mine = state.this_process()
    state.write(Record("mine", "local", phase, mine.pid, mine.started, process.pid_namespace(), False, {}, "aaaa"))
    monkeypatch.setattr(sweeping, "attach", lambda name: dataclasses.replace(testbed, folder=state.folder_of(name)))
    _killed(state.folder_of("mine"), "aaaa")
    name = _left_by(testbed, "aaaa-main")

    assert sweeping.sweep(Silent()) == [f"{name} of a killed test on testbed mine"] * removed
    assert sweeping.sweep(Silent()) == []


def test_sweep_continues_if_a_testbed_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, testbed: Testbed, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path))
    monkeypatch.setattr(sweeping, "PROVIDERS", {})
    mine = state.this_process()
    state.write(
        Record("mine", "local", Phase.READY, mine.pid, mine.started, process.pid_namespace(), False, {}, "aaaa")
    )
    _kube(testbed).down = True
    monkeypatch.setattr(sweeping, "attach", lambda name: dataclasses.replace(testbed, folder=state.folder_of(name)))
    _killed(state.folder_of("mine"), "aaaa")

    assert sweeping.sweep(Progress()) == []
    assert "not removed: testbed mine" in capsys.readouterr().err
