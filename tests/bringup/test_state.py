"""The record of a testbed: its owner, whether it is abandoned, and atomic writes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from testbed import process
from testbed.bringup import state
from testbed.bringup.state import Phase, Record
from testbed.errors import TestbedError, UsageError

MINE = state.this_process()
READY = Record(
    "dev", "local", Phase.READY, MINE.pid, MINE.started, process.pid_namespace(), ephemeral=False, config={"a": 1}
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty state folder."""
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path))
    return tmp_path


def test_a_record_is_read_as_it_was_written() -> None:
    state.write(READY)

    assert (state.read("dev"), state.names()) == (READY, ["dev"])


def test_the_record_keeps_the_drivers_and_the_nodes_where_they_must_run() -> None:
    record = dataclasses.replace(READY, drivers=("gpu.example",), kept_nodes={"gpu.example": ["node-1"]})
    state.write(record)

    assert state.read("dev") == record


def test_an_unknown_testbed_has_no_record() -> None:
    with pytest.raises(UsageError, match="there is no testbed dev"):
        state.require("dev")


def test_a_similar_name_is_suggested() -> None:
    state.write(READY)

    with pytest.raises(UsageError, match="did you mean dev"):
        state.require("dew")


@pytest.mark.parametrize(
    ("phase", "ephemeral", "alive", "abandoned"),
    [
        (Phase.READY, False, False, False),
        (Phase.READY, True, True, False),
        (Phase.READY, True, False, True),
        (Phase.CREATING, False, True, False),
        (Phase.CREATING, False, False, True),
        (Phase.DELETING, False, False, True),
    ],
)
def test_a_testbed_is_abandoned_if_its_maker_died_before_it_was_finished_or_removed(
    phase: Phase, ephemeral: bool, alive: bool, abandoned: bool
) -> None:
    started = MINE.started if alive else MINE.started + 1
    record = dataclasses.replace(READY, phase=phase, ephemeral=ephemeral, owner_started=started)

    assert record.abandoned is abandoned


def test_a_testbed_of_another_pid_namespace_is_never_abandoned() -> None:
    record = dataclasses.replace(READY, phase=Phase.CREATING, owner_started=0, pid_space="pid:[1]")

    assert not record.abandoned


def test_a_foreign_folder_is_no_testbed_and_is_never_overwritten(folder: Path) -> None:
    (folder / "photos").mkdir()
    (folder / "photos/summer.jpg").touch()

    assert (state.read("photos"), state.names()) == (None, [])
    with pytest.raises(UsageError, match="is no testbed"):
        state.write(dataclasses.replace(READY, name="photos"))
    assert (folder / "photos/summer.jpg").exists()


def test_a_damaged_record_is_an_error(folder: Path) -> None:
    state.write(READY)
    (folder / "dev/testbed.json").write_text('{"name": "de')

    with pytest.raises(TestbedError, match=r"testbed\.json"):
        state.read("dev")


def test_partial_folders_of_dead_processes_are_removed_and_those_of_running_ones_are_not(folder: Path) -> None:
    dead, mine = folder / ".old-1-1", folder / f".new-{MINE.pid}-{MINE.started}"
    for each in (dead, mine):
        each.mkdir()

    state.discard_partial_folders()

    assert (dead.exists(), mine.exists()) == (False, True)


def test_a_testbed_can_be_discarded_twice() -> None:
    state.write(READY)

    state.discard("dev")
    state.discard("dev")

    assert state.names() == []


def test_only_one_process_can_lock_a_testbed() -> None:
    with state.locked("dev"), pytest.raises(UsageError, match="another dra-testbed"), state.locked("dev"):
        pass


def test_the_logs_of_a_failed_up_replace_older_ones(folder: Path) -> None:
    state.keep_logs("dev", lambda into: (into / "old.log").touch())
    kept = state.keep_logs("dev", lambda into: (into / "new.log").touch())

    assert [path.name for path in kept.iterdir()] == ["new.log"]
    assert kept.is_relative_to(folder)


def test_the_lock_file_exists_as_long_as_its_testbed(folder: Path) -> None:
    lock = folder / ".locks/dev"
    with state.locked("dev"):
        state.write(READY)
    assert lock.exists()
    with state.locked("dev"):
        state.discard("dev")
    assert not lock.exists()


def test_stale_locks_are_removed_and_held_locks_and_those_of_testbeds_are_not(folder: Path) -> None:
    state.write(READY)
    with state.locked("held"):
        for name in ("left", "dev"):
            (folder / ".locks" / name).touch()
        state.discard_stale_locks()
        assert sorted(path.name for path in (folder / ".locks").glob("[!.]*")) == ["dev", "held"]
