"""A damaged state file stops neither `down` nor `sweep` nor any `up`; what runs is found by its mark."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed import process, state_files
from testbed.bringup import state, sweeping, testbeds
from testbed.bringup.state import Phase, Record
from testbed.cli.main import run
from testbed.models.config import TestbedConfig, config_to_record
from testbed.models.sections import Allow
from testbed.process import ProcessId
from testbed.progress import Progress, Silent
from testbed.providers.base import Artifacts, ClusterSpec
from testbed.providers.existing.cluster import FoundClusterRecord
from testbed.providers.kind import record as kind_record
from testbed.providers.kind.cluster import KindCluster
from testbed.providers.kind.engine import Engine
from testbed.providers.local import provider as local
from testbed.providers.local.layout import ClusterRecord
from testbed.providers.process_marks import MARK, mark_of, marked_processes
from testbed.waiting import Budget, eventually_true
from tests.providers.kind.conftest import FakeEngine, fake_engine

__all__ = ["fake_engine"]

Damage = Callable[[Path], object]


def _wrong_types(file: Path) -> None:
    content = json.loads(file.read_text())
    file.write_text(json.dumps({key: [None, 7] if isinstance(value, str) else "x" for key, value in content.items()}))


DAMAGES: dict[str, Damage] = {
    "empty": lambda file: file.write_text(""),
    "cut in the middle": lambda file: file.write_text(file.read_text()[: file.stat().st_size // 2]),
    "not JSON": lambda file: file.write_bytes(b"\xff\x00 no JSON"),
    "another JSON": lambda file: file.write_text("[1, 2]"),
    "wrong types": _wrong_types,
}
damaged = pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path))
    monkeypatch.setattr(sweeping, "PROVIDERS", {})  # these tests must not sweep the host


@pytest.fixture
def running() -> Iterator[Callable[[str], ProcessId]]:
    """Return a function that starts a process of a testbed, with its mark."""
    started = []

    def start(name: str) -> ProcessId:
        env = {"PATH": os.defpath, MARK: mark_of(state.cluster_folder(name))}
        started.append(process.start(["sleep", "1000"], log=Path(os.devnull), env=env))
        # The kernel shows the environment shortly after the program has started.
        assert eventually_true(
            lambda: started[-1] in marked_processes(), Budget("mark", 10, "test"), longest_pause=0.02
        )
        return started[-1]

    yield start
    process.kill_all(started)


def _record(name: str, provider: str = "local", phase: Phase = Phase.CREATING) -> None:
    """Write the record of a testbed whose maker was killed."""
    config, dead = config_to_record(TestbedConfig(name=name, driver=None)), state.this_process().started + 1
    space = process.pid_namespace()
    state.write(Record(name, provider, phase, os.getpid(), dead, space, ephemeral=True, config=config))


def _local(name: str) -> Path:
    """Write all files of a local testbed; return its cluster's folder."""
    _record(name)
    folder = state.cluster_folder(name)
    local._save(folder, ClusterSpec("1.37.1"), Artifacts())
    ClusterRecord(folder / "cluster.json", 250, ("node-1",), "1.37.1").save()
    return folder


FILES = ["testbed.json", "cluster/cluster.json", "cluster/spec.json"]


@pytest.mark.parametrize(
    ("command", "file", "kind"),
    [
        *(("down --name cut", file, kind) for file in FILES for kind in DAMAGES),
        *(("sweep", file, "cut in the middle") for file in FILES),
    ],
)
def test_a_damaged_testbed_is_removed_with_its_processes_and_one_warning(
    command: str, file: str, kind: str, running: Callable[[str], ProcessId], capsys: pytest.CaptureFixture[str]
) -> None:
    _local("cut")
    DAMAGES[kind](state.folder_of("cut") / file)
    mine, another = running("cut"), running("other")
    assert run(command.split()) == 0
    assert (process.alive(mine), process.alive(another)) == (False, True)
    assert not state.folder_of("cut").exists()
    said = "".join(capsys.readouterr().err.split())
    assert said.count("isdamaged:") == 1
    assert f"{state.folder_of('cut')}/{file}isdamaged" in said


@pytest.mark.parametrize("file", FILES)
def test_a_damaged_testbed_does_not_stop_the_up_of_another_one(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    _local("cut")
    DAMAGES["cut in the middle"](state.folder_of("cut") / file)
    testbeds._remove_all_abandoned(Progress())
    assert "".join(capsys.readouterr().err.split()).count("isdamaged:") == 1


def test_a_testbed_with_a_damaged_record_is_replaced_by_an_up_of_its_name(running: Callable[[str], ProcessId]) -> None:
    _local("cut")
    DAMAGES["empty"](state.folder_of("cut") / "testbed.json")
    mine = running("cut")
    testbeds._refuse_or_remove("cut", Silent())
    assert (process.alive(mine), state.names()) == (False, [])


@damaged
def test_a_kind_cluster_with_a_damaged_record_is_removed_by_the_name_of_its_folder(
    damage: Damage, fake_engine: FakeEngine, tmp_path: Path
) -> None:
    _record("cut", "kind")
    folder = state.cluster_folder("cut")
    name = kind_record.kind_name("cut", folder)
    left = tmp_path / "containers"
    left.write_text(f"cut-worker {name}\n")
    fake_engine(f"-v) echo Docker version 28;;\n*cluster={name}*) cat {left};;\nrm*cut-worker) : > {left};;\n*) ;;")
    kind_record.save(KindCluster("cut", folder, name, Path("kind"), Engine("docker", {})))
    damage(folder / "kind.json")
    assert run(["down", "--name", "cut"]) == 0
    assert not state.folder_of("cut").exists()
    assert left.read_text() == ""


@damaged
def test_a_damaged_record_of_an_existing_cluster_stops_nothing_and_says_what_stays(
    damage: Damage, capsys: pytest.CaptureFixture[str]
) -> None:
    _record("cut", "existing")
    folder = state.cluster_folder("cut")
    folder.mkdir()
    FoundClusterRecord(Allow.WORKLOADS, "1.37.1", frozenset()).save(folder)
    damage(folder / "cluster.json")
    assert run(["down", "--name", "cut"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "dra-testbed sweep --kubeconfig FILE removes them" in said
    assert not state.folder_of("cut").exists()


@pytest.mark.parametrize("file", FILES)
def test_other_commands_report_the_damaged_file(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    _local("cut")
    _record("cut", phase=Phase.READY)
    DAMAGES["wrong types"](state.folder_of("cut") / file)
    for command in ("logs --name cut", "hardware show --name cut"):
        assert run(command.split()) == 3
    run(["status"])
    said = capsys.readouterr()
    assert "unexpected" not in said.err
    assert file in (said.err + said.out)


def test_a_wrong_configuration_in_a_record_is_reported() -> None:
    _local("cut")
    _record("cut", phase=Phase.READY)
    file = state.folder_of("cut") / "testbed.json"
    state_files.write(file, {**json.loads(file.read_text()), "config": {"spec": [7]}})
    assert run(["hardware", "show", "--name", "cut"]) == 3
    assert run(["status"]) == 0
    assert run(["down", "--name", "cut"]) == 0


def test_a_testbed_with_a_damaged_record_is_kept_by_a_sweep_while_tests_use_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _local("cut")
    DAMAGES["empty"](state.folder_of("cut") / "testbed.json")
    monkeypatch.setattr(sweeping, "suite_processes", lambda _: [ProcessId(1, 1)])
    assert run(["sweep"]) == 0
    assert "not removed: testbed cut" in " ".join(capsys.readouterr().err.split())
    assert state.folder_of("cut").exists()


def test_a_write_that_fails_leaves_the_old_content_and_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.json"
    state_files.write(file, {"a": 1})

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        state_files.write(file, {"a": 2})
    assert state_files.read(file, dict) == {"a": 1}
    assert list(tmp_path.iterdir()) == [file]


def test_state_is_flushed_to_the_disk_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append(str(Path(f"/proc/self/fd/{handle}").readlink())))
    _local("dev")
    folder = state.folder_of("dev")
    for each in (folder.parent, folder / "cluster"):
        assert str(each) in flushed
    assert sum("json" in Path(each).name for each in flushed) == 3
