import json
import logging
from pathlib import Path

import pytest

from fake_driver.journal import Journal


def test_each_event_is_one_line_with_its_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.note("prepare", uid="a", devices=["gpu-0"])
    journal.note("unprepare", uid="a")
    first, second = (json.loads(line) for line in journal.path.read_text().splitlines())
    assert (first["event"], first["uid"], first["devices"]) == ("prepare", "a", ["gpu-0"])
    assert first["time"] <= second["time"]
    assert first["time"].endswith("Z")


def test_it_stays_small(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl", largest=500)
    for number in range(100):
        journal.note("event", number=number)
    kept = list(tmp_path.iterdir())
    assert sum(path.stat().st_size for path in kept) < 1200
    assert {path.name for path in kept} <= {"journal.jsonl", "journal.old.jsonl"}
    assert json.loads((tmp_path / "journal.old.jsonl").read_text().splitlines()[0])["number"] > 0


def test_the_log_and_whoever_listens_hear_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    heard: list[object] = []
    Journal(tmp_path / "journal.jsonl", heard=lambda *said: heard.append(said)).note("prepare", uid="a")
    (record,) = caplog.records
    assert (record.message, record.__dict__["facts"]) == ("prepare", {"uid": "a"})
    assert heard == [("prepare", {"uid": "a"})]


def test_a_folder_that_is_gone_fails_no_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Journal(tmp_path / "gone" / "journal.jsonl").note("prepare")
    assert "cannot be written" in caplog.text
