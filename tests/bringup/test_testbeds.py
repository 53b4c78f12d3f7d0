"""Bringing up, attaching to and removing testbeds, without a cluster."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from testbed import process
from testbed.bringup import health, state, sweeping, temporary_cluster_folder, testbeds
from testbed.bringup.state import Phase, Record
from testbed.bringup.testbeds import attach, remove_if_abandoned
from testbed.cli.main import run
from testbed.errors import TestbedError, UsageError
from testbed.models.config import TestbedConfig, config_to_record
from testbed.process import ProcessId
from testbed.progress import Silent
from testbed.providers.process_marks import SUITES_ON, mark_of


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path))


def test_a_temporary_cluster_folder_is_in_use_until_the_block_ends() -> None:
    with temporary_cluster_folder(TestbedConfig(name="bench"), Silent()) as cluster:
        assert sweeping.in_use(cluster)
        assert state.names() == ["bench"]
    assert not sweeping.in_use(cluster)
    assert not cluster.parent.exists()


def test_a_temporary_cluster_folder_is_removed_after_an_error() -> None:
    with pytest.raises(RuntimeError), temporary_cluster_folder(TestbedConfig(name="bench"), Silent()):
        raise RuntimeError
    assert state.names() == []


def test_suites_on_an_abandoned_testbed_are_killed_with_it_and_no_others(tmp_path: Path) -> None:
    def running_suite(name: str) -> ProcessId:
        env = {"PATH": os.defpath, SUITES_ON: mark_of(state.folder_of(name))}
        return process.start(["sleep", "1000"], log=tmp_path / "log", env=env)

    config, dead = config_to_record(TestbedConfig(name="killed")), state.this_process().started + 1
    state.write(
        Record(
            "killed", "local", Phase.CREATING, os.getpid(), dead, process.pid_namespace(), ephemeral=True, config=config
        )
    )
    orphan, another = running_suite("killed"), running_suite("other")
    try:
        assert remove_if_abandoned("killed", Silent())
        assert (process.alive(orphan), process.alive(another)) == (False, True)
    finally:
        process.kill_all([orphan, another])


@pytest.mark.parametrize(
    ("started", "why"), [(1, "the process that made it was killed; dra-testbed sweep removes it"), (0, "creating")]
)
def test_the_error_for_a_testbed_that_is_not_up_says_whether_its_maker_runs(started: int, why: str) -> None:
    config, maker = config_to_record(TestbedConfig(name="x")), state.this_process()
    born = maker.started + started  # another process had that process ID
    state.write(
        Record("x", "local", Phase.CREATING, maker.pid, born, process.pid_namespace(), ephemeral=False, config=config)
    )
    with pytest.raises(UsageError, match=f"testbed x is not up: {why}\n  try"):
        attach("x")
    assert (why in health.status_of("x").problems) is bool(started)


def test_down_all_removes_all_but_a_testbed_of_another_version_and_names_that_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = config_to_record(TestbedConfig(name="good"))
    for name in ("new", "good"):
        state.write(Record(name, "local", Phase.READY, 1, 1, "", ephemeral=False, config=config))
    file = state.folder_of("new") / "testbed.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "added": "later"}))
    assert run(["down", "--all"]) == 3
    assert state.names() == ["new"]
    assert "new/testbed.json: another version of dra-testbed wrote it: it contains added" in capsys.readouterr().err


def test_all_and_name_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["down", "--all", "--name", "x"]) == 2
    assert "leave one of them out" in capsys.readouterr().err


def test_a_failed_up_reports_the_last_error_of_each_kubelet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = TestbedConfig(name="dev", driver=None)
    (tmp_path / ".failed/dev").mkdir(parents=True)
    line = 'E1118 16:00:02.0 1 b.go:2] "cAdvisor" err="too many open files"'
    (tmp_path / ".failed/dev/node-1-kubelet.log").write_text(f"{line}\n")
    monkeypatch.setattr(testbeds, "_keep_logs", lambda _: tmp_path / ".failed/dev")
    record = testbeds._record(config, ephemeral=False)

    with pytest.raises(TestbedError) as told, testbeds._undone_on_failure(record, Silent()):
        raise TestbedError("0 of 1 nodes")

    assert any(line in note for note in told.value.__notes__)


def test_a_usage_error_is_reported_without_errors_of_kubelets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "node-1-kubelet.log").write_text('E1118 16:00:02.0 1 b.go:2] "something else"\n')
    monkeypatch.setattr(testbeds, "_keep_logs", lambda _: tmp_path)
    record = testbeds._record(TestbedConfig(name="dev", driver=None), ephemeral=False)

    with pytest.raises(UsageError) as told, testbeds._undone_on_failure(record, Silent()):
        raise UsageError("spec.devices.classes[0]: the cluster has no DeviceClass gpu")

    assert not [note for note in told.value.__notes__ if "last error" in note]
