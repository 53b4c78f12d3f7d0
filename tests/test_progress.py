"""Steps, as they are printed without a terminal."""

from __future__ import annotations

import io
import re
import threading

import pytest
from rich.console import Console

from testbed.progress import Progress, Silent


def recording_progress(*, heartbeat: float = 60) -> tuple[Progress, io.StringIO]:
    text = io.StringIO()
    return Progress(Console(file=text, width=200, force_terminal=False), heartbeat=heartbeat), text


def test_a_step_ends_with_a_line_that_has_its_duration() -> None:
    progress, text = recording_progress()

    with progress.step("cluster [2 nodes]") as step:
        step.note("waiting")

    assert re.fullmatch(r"✓ cluster \[2 nodes\] \(waiting\)  \d\.\d s\n", text.getvalue())
    assert progress.steps == [step]
    assert step.seconds > 0


def test_a_failed_step_is_marked_and_its_error_is_raised() -> None:
    progress, text = recording_progress()

    with pytest.raises(KeyError), progress.step("cluster"):
        raise KeyError("x")

    assert text.getvalue().startswith("✗ cluster")


def test_long_steps_print_a_line_at_each_heartbeat() -> None:
    class HeartbeatSink(io.StringIO):
        beat = threading.Event()

        def write(self, text: str) -> int:
            if "so far" in text:
                self.beat.set()
            return super().write(text)

    text = HeartbeatSink()
    progress = Progress(Console(file=text, width=200), heartbeat=0.01)

    with progress.step("build") as step:
        step.note("kubelet")
        assert text.beat.wait(10)

    assert "… build: " in text.getvalue()
    assert "kubelet" in text.getvalue()


def test_markup_in_a_line_is_printed_literally() -> None:
    progress, text = recording_progress()

    progress.say("[bold]x[/]")

    assert text.getvalue() == "[bold]x[/]\n"


def test_silent_keeps_the_steps_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    silent = Silent()

    with silent.step("cluster"):
        silent.say("hello")

    assert [step.title for step in silent.steps] == ["cluster"]
    assert capsys.readouterr() == ("", "")


def test_control_characters_of_others_are_shown() -> None:
    progress, text = recording_progress()
    progress.say("the driver says \x1b[2J")
    assert text.getvalue() == "the driver says \\x1b[2J\n"
