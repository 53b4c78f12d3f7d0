import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_driver import journal
from fake_driver.journal import Journal


def test_each_event_is_one_line_with_its_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.record("prepare", uid="a", devices=["gpu-0"])
    journal.record("unprepare", uid="a")
    first, second = (json.loads(line) for line in journal.path.read_text().splitlines())
    assert (first["event"], first["uid"], first["devices"]) == ("prepare", "a", ["gpu-0"])
    assert first["time"] <= second["time"]
    assert first["time"].endswith("Z")


def test_rotation_keeps_the_files_small(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl", max_bytes=500)
    for number in range(100):
        journal.record("event", number=number)
    kept = list(tmp_path.iterdir())
    assert sum(path.stat().st_size for path in kept) < 1200
    assert {path.name for path in kept} <= {"journal.jsonl", "journal.old.jsonl"}
    assert json.loads((tmp_path / "journal.old.jsonl").read_text().splitlines()[0])["number"] > 0


def test_each_event_is_logged_and_passed_to_the_callback(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    events: list[object] = []
    Journal(tmp_path / "journal.jsonl", on_event=lambda *event: events.append(event)).record("prepare", uid="a")
    (record,) = caplog.records
    assert (record.message, record.__dict__["facts"]) == ("prepare", {"uid": "a"})
    assert events == [("prepare", {"uid": "a"})]


def test_a_missing_folder_fails_no_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Journal(tmp_path / "gone" / "journal.jsonl").record("prepare")
    assert "cannot be written" in caplog.text


def entries(journal: Journal) -> list[int]:
    return [each["seq"] for each in journal.entries_after(0, 1000)]


def test_numbers_continue_after_a_restart(tmp_path: Path) -> None:
    for _ in range(3):
        Journal(tmp_path / "journal.jsonl").record("event")
    journal = Journal(tmp_path / "journal.jsonl")
    journal.record("event")
    assert entries(journal) == [1, 2, 3, 4]
    assert journal.last_number == 4
    assert [each["seq"] for each in journal.entries_after(1, 2)] == [2, 3]


def test_two_processes_share_the_numbers_across_a_rotation(tmp_path: Path) -> None:
    one, other = (Journal(tmp_path / "journal.jsonl", max_bytes=2000) for _ in range(2))
    for number in range(60):
        (one, other)[number % 2].record("event", number=number)
    found = entries(one)
    assert found == list(range(found[0], 61))
    assert (tmp_path / "journal.old.jsonl").exists()
    assert len(found) > 10


def test_a_rotation_while_reading_hides_no_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Journal(tmp_path / "journal.jsonl")
    for _ in range(3):
        one.record("event")
    rotations: list[Callable[[], object]] = [lambda: one.path.replace(one._rotated)]
    really = journal._entries

    def entries(path: Path) -> Iterator[dict[str, Any]]:
        yield from list(really(path))
        for rotate in rotations[:1]:
            rotations.clear()
            rotate()
            one.record("event")

    monkeypatch.setattr(journal, "_entries", entries)
    assert [each["seq"] for each in one.entries_after(0, 10)] == [1, 2, 3]
    assert [each["seq"] for each in one.entries_after(0, 10)] == [1, 2, 3, 4]


def test_a_line_that_is_too_long_is_replaced_by_its_length(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.record("event", text="x" * 2**17)
    journal.record("event")
    first, second = journal.entries_after(0, 10)
    assert first["too_long"] > 2**17
    assert (first["seq"], second["seq"]) == (1, 2)


def test_a_line_that_a_killed_process_left_truncated_is_skipped(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.record("event")
    with journal.path.open("a") as file:
        file.write('{"seq": 2, "ti\n[]\n{"event": "of an older version"}\n')
    journal.record("event")
    assert entries(journal) == [1, 2]
