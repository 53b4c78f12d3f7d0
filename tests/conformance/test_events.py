from __future__ import annotations

from pathlib import Path

from testbed.conformance import events
from testbed.conformance.events import EventLog


def test_characters_that_are_not_valid_text_are_replaced(tmp_path: Path) -> None:
    EventLog(tmp_path).write("test-finished", message="a\ud800b → c")
    assert events.read(tmp_path)[-1]["message"] == "a?b → c"
