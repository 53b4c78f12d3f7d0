"""Steps, as they are shown where there is no terminal."""

from __future__ import annotations

import io
import re
import threading

import pytest
from rich.console import Console

from testbed.progress import Progress, Silent


def recorded(*, heartbeat: float = 60) -> tuple[Progress, io.StringIO]:
    text = io.StringIO()
    return Progress(Console(file=text, width=200, force_terminal=False), heartbeat=heartbeat), text


def test_a_step_ends_with_a_line_and_its_time() -> None:
    progress, text = recorded()

    with progress.step("cluster [2 nodes]") as step:
        step.note("waiting")

    assert re.fullmatch(r"✓ cluster \[2 nodes\] \(waiting\)  \d\.\d s\n", text.getvalue())
    assert progress.steps == [step]
    assert step.seconds > 0


def test_a_step_that_fails_says_so_and_lets_the_error_pass() -> None:
    progress, text = recorded()

    with pytest.raises(KeyError), progress.step("cluster"):
        raise KeyError("x")

    assert text.getvalue().startswith("✗ cluster")


def test_long_work_is_heard_of() -> None:
    class Heard(io.StringIO):
        beat = threading.Event()

        def write(self, text: str) -> int:
            if "so far" in text:
                self.beat.set()
            return super().write(text)

    text = Heard()
    progress = Progress(Console(file=text, width=200), heartbeat=0.01)

    with progress.step("build") as step:
        step.note("kubelet")
        assert text.beat.wait(10)

    assert "… build: " in text.getvalue()
    assert "kubelet" in text.getvalue()


def test_a_plain_line_is_printed_as_it_is() -> None:
    progress, text = recorded()

    progress.say("[bold]x[/]")

    assert text.getvalue() == "[bold]x[/]\n"


def test_the_silent_one_keeps_the_steps_and_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    silent = Silent()

    with silent.step("cluster"):
        silent.say("hello")

    assert [step.title for step in silent.steps] == ["cluster"]
    assert capsys.readouterr() == ("", "")
