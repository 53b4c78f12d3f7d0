"""The record of a testbed: who owns it, whether it is abandoned, and that half of it is never read."""

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
    """An empty state folder."""
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path))
    return tmp_path


def test_a_record_is_read_as_it_was_written() -> None:
    state.write(READY)

    assert (state.read("dev"), state.names()) == (READY, ["dev"])


def test_there_is_no_record_of_what_was_never_made() -> None:
    with pytest.raises(UsageError, match="there is no testbed dev"):
        state.require("dev")


def test_a_near_name_is_offered() -> None:
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
def test_what_nobody_will_finish_or_use_is_abandoned(
    phase: Phase, ephemeral: bool, alive: bool, abandoned: bool
) -> None:
    started = MINE.started if alive else MINE.started + 1
    record = dataclasses.replace(READY, phase=phase, ephemeral=ephemeral, owner_started=started)

    assert record.abandoned is abandoned


def test_a_testbed_of_another_pid_namespace_is_nobody_elses_to_judge() -> None:
    record = dataclasses.replace(READY, phase=Phase.CREATING, owner_started=0, pid_space="pid:[1]")

    assert not record.abandoned


def test_a_folder_of_somebody_else_is_no_testbed_and_is_never_taken(folder: Path) -> None:
    (folder / "photos").mkdir()
    (folder / "photos/summer.jpg").touch()

    assert (state.read("photos"), state.names()) == (None, [])
    with pytest.raises(UsageError, match="is no testbed"):
        state.write(dataclasses.replace(READY, name="photos"))
    assert (folder / "photos/summer.jpg").exists()


def test_a_damaged_record_is_said_and_not_guessed_about(folder: Path) -> None:
    state.write(READY)
    (folder / "dev/testbed.json").write_text('{"name": "de')

    with pytest.raises(TestbedError, match=r"testbed\.json"):
        state.read("dev")


def test_what_a_kill_in_the_middle_left_is_removed_and_what_is_in_work_is_not(folder: Path) -> None:
    dead, mine = folder / ".old-1-1", folder / f".new-{MINE.pid}-{MINE.started}"
    for each in (dead, mine):
        each.mkdir()

    state.discard_partial_folders()

    assert (dead.exists(), mine.exists()) == (False, True)


def test_a_discarded_testbed_is_gone_and_twice_is_fine() -> None:
    state.write(READY)

    state.discard("dev")
    state.discard("dev")

    assert state.names() == []


def test_only_one_changes_a_testbed_at_a_time() -> None:
    with state.locked("dev"), pytest.raises(UsageError, match="another dra-testbed"), state.locked("dev"):
        pass


def test_the_logs_of_a_failed_up_replace_older_ones(folder: Path) -> None:
    state.keep_logs("dev", lambda into: (into / "old.log").touch())
    kept = state.keep_logs("dev", lambda into: (into / "new.log").touch())

    assert [path.name for path in kept.iterdir()] == ["new.log"]
    assert kept.is_relative_to(folder)


def test_a_lock_goes_with_its_testbed_and_stays_as_long_as_there_is_one(folder: Path) -> None:
    lock = folder / ".locks/dev"
    with state.locked("dev"):
        state.write(READY)
    assert lock.exists()
    with state.locked("dev"):
        state.discard("dev")
    assert not lock.exists()


def test_locks_that_a_kill_left_are_removed_and_those_that_are_held_or_of_a_testbed_are_not(folder: Path) -> None:
    state.write(READY)
    with state.locked("held"):
        for name in ("left", "dev"):
            (folder / ".locks" / name).touch()
        state.discard_stale_locks()
        assert sorted(path.name for path in (folder / ".locks").glob("[!.]*")) == ["dev", "held"]
