from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from testbed.conformance import events, report_folder
from testbed.conformance.events import EventLog
from testbed.errors import UsageError


def test_a_folder_that_another_run_has_reserved_is_refused(tmp_path: Path) -> None:
    with (
        report_folder.reserve(tmp_path),
        pytest.raises(UsageError, match="another run is writing its report"),
        report_folder.reserve(tmp_path),
    ):
        pass


def test_a_folder_in_which_a_pytest_without_its_run_still_writes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(report_folder.RESERVED_BY, str(os.getppid()))
    with report_folder.lock_log(tmp_path):
        monkeypatch.delenv(report_folder.RESERVED_BY)
        with pytest.raises(UsageError, match="another run"), report_folder.reserve(tmp_path):
            pass


def test_the_parent_process_may_have_reserved_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with report_folder.reserve(tmp_path):
        with pytest.raises(UsageError), report_folder.lock_log(tmp_path):
            pass
        monkeypatch.setenv(report_folder.RESERVED_BY, str(os.getppid()))
        with report_folder.lock_log(tmp_path):
            report_folder.start_report(tmp_path)


def test_a_folder_can_be_used_again_by_the_next_run(tmp_path: Path) -> None:
    for _ in range(2):
        with report_folder.lock_log(tmp_path / "report"):
            log = EventLog(tmp_path / "report")
            report_folder.start_report(log.folder)
            log.write("run-started")
        assert [each["event"] for each in events.read(tmp_path / "report")] == ["run-started"]


def test_a_folder_that_was_created_for_a_refused_run_is_removed_again(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for folder in (tmp_path / "there", tmp_path / "new/of/run"):
        with pytest.raises(UsageError, match="not up"), report_folder.reserve(folder):
            raise UsageError("not up")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_folder_that_contains_something_is_not_removed(tmp_path: Path) -> None:
    with report_folder.reserve(tmp_path / "report"):
        (tmp_path / "report/notes").touch()
    assert (tmp_path / "report/notes").exists()


@pytest.mark.parametrize("name", ["report.yaml", "junit.xml", "events.jsonl"])
def test_a_folder_with_foreign_files_of_the_same_names_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(json.dumps({"event": "click"}))
    with (
        pytest.raises(UsageError, match=f"contains {name}, but no report of dra-testbed"),
        report_folder.reserve(tmp_path),
    ):
        pass
    report_folder.discard(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_evidence_beside_a_foreign_log_is_not_discarded(tmp_path: Path) -> None:
    (tmp_path / "evidence").mkdir()
    (tmp_path / "events.jsonl").write_text("[]\n")
    report_folder.discard(tmp_path)
    assert (tmp_path / "evidence").exists()


def test_a_report_can_be_written_beside_other_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with report_folder.reserve(tmp_path):
        report_folder.start_report(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_file_is_refused_as_report_folder(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("")
    with pytest.raises(UsageError, match="cannot write a report"), report_folder.reserve(tmp_path / "report"):
        pass
