from pathlib import Path

from fake_driver.crash_points import ArmedCrashes
from fake_driver.journal import Journal


def test_the_process_ends_at_an_armed_point_and_the_journal_records_it(tmp_path: Path) -> None:
    exits: list[int] = []
    armed = ArmedCrashes(Journal(tmp_path / "journal.jsonl"), exits.append)
    armed.arm("after-cdi")
    assert armed.points == ["after-cdi"]
    armed.reached("before-checkpoint")
    assert exits == []
    armed.reached("after-cdi")
    assert exits == [137]
    assert '"crash", "point": "after-cdi"' in (tmp_path / "journal.jsonl").read_text()


def test_a_cleared_point_is_passed(tmp_path: Path) -> None:
    exits: list[int] = []
    armed = ArmedCrashes(Journal(tmp_path / "journal.jsonl"), exits.append)
    armed.arm("after-cdi")
    assert armed.clear() == 1
    armed.reached("after-cdi")
    assert (exits, armed.points, armed.clear()) == ([], [], 0)
