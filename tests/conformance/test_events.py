from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from testbed.conformance import events
from testbed.conformance.events import EventLog
from testbed.errors import UsageError


def test_a_folder_that_another_run_has_reserved_is_refused(tmp_path: Path) -> None:
    with (
        events.reserved(tmp_path),
        pytest.raises(UsageError, match="another run is writing its report"),
        events.reserved(tmp_path),
    ):
        pass


def test_a_pytest_that_outlived_its_run_keeps_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(events.RESERVED_BY, str(os.getppid()))
    with events.writing(tmp_path):
        monkeypatch.delenv(events.RESERVED_BY)
        with pytest.raises(UsageError, match="another run"), events.reserved(tmp_path):
            pass


def test_whoever_started_us_may_have_reserved_the_folder_for_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with events.reserved(tmp_path):
        with pytest.raises(UsageError), events.writing(tmp_path):
            pass
        monkeypatch.setenv(events.RESERVED_BY, str(os.getppid()))
        with events.writing(tmp_path):
            EventLog(tmp_path).begin()


def test_the_same_folder_serves_one_run_after_the_other(tmp_path: Path) -> None:
    for _ in range(2):
        with events.writing(tmp_path / "report"):
            log = EventLog(tmp_path / "report")
            log.begin()
            log.write("run-started")
        assert [each["event"] for each in events.read(tmp_path / "report")] == ["run-started"]


def test_a_folder_made_for_a_run_of_which_nothing_came_is_removed_again(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for folder in (tmp_path / "there", tmp_path / "new/of/run"):
        with pytest.raises(UsageError, match="not up"), events.reserved(folder):
            raise UsageError("not up")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_folder_with_anything_in_it_stays(tmp_path: Path) -> None:
    with events.reserved(tmp_path / "report"):
        (tmp_path / "report/notes").touch()
    assert (tmp_path / "report/notes").exists()


@pytest.mark.parametrize("name", ["report.yaml", "junit.xml", "events.jsonl"])
def test_files_of_somebody_else_are_refused_and_stay(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(json.dumps({"event": "click"}))
    with pytest.raises(UsageError, match=f"holds {name}, but no report of dra-testbed"), events.reserved(tmp_path):
        pass
    events.discard(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_evidence_beside_a_foreign_log_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "evidence").mkdir()
    (tmp_path / "events.jsonl").write_text("[]\n")
    events.discard(tmp_path)
    assert (tmp_path / "evidence").exists()


def test_a_folder_with_other_things_in_it_may_get_a_report(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with events.reserved(tmp_path):
        EventLog(tmp_path).begin()
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_report_folder_that_is_a_file_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("")
    with pytest.raises(UsageError, match="cannot write a report"), events.reserved(tmp_path / "report"):
        pass


def test_words_that_are_no_text_are_kept_as_far_as_they_are(tmp_path: Path) -> None:
    log = events.EventLog(tmp_path)
    log.begin()
    log.write("test-finished", message="a\ud800b → c")
    assert events.read(tmp_path)[-1]["message"] == "a?b → c"
