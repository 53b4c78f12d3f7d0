from __future__ import annotations

import secrets
from pathlib import Path

from testbed.conformance import events
from testbed.conformance.events import EventLog


def test_characters_that_are_not_valid_text_are_replaced(tmp_path: Path) -> None:
    EventLog(tmp_path).write("test-finished", message="a\ud800b → c")
    assert events.read(tmp_path)[-1]["message"] == "a?b → c"


def test_events_contain_no_credentials(tmp_path: Path) -> None:
    canary = secrets.token_hex(12)
    text = f"command failed (exit 1): env\n    DB_PASSWORD={canary}\n    GPU=gpu-1"
    EventLog(tmp_path).write("test-finished", message=text, rows=[{"reason": f"Bearer {canary}"}])
    assert canary not in (tmp_path / "events.jsonl").read_text()
    assert "GPU=gpu-1" in events.read(tmp_path)[0]["message"]
