"""Shows long work as steps with durations: a live line on a terminal, plain lines elsewhere. Slow functions take a Progress."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console

from testbed.redaction import show_controls


class Screen(Console):
    """A console that raises BrokenPipeError when the reader has closed the pipe, as `head` does; rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        """Raise the error that rich caught; the entry point handles it."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


@dataclass
class Step:
    """One step of long work."""

    title: str
    began: float = field(default_factory=time.monotonic)
    doing: str = ""
    seconds: float = 0.0

    def note(self, doing: str) -> None:
        """Show what the step is doing, until the next note."""
        self.doing = doing


class Progress:
    """Steps on a console. `steps` keeps all of them with their durations, for measurements."""

    def __init__(self, console: Console | None = None, *, heartbeat: float = 15.0) -> None:
        self.console = console or Screen(stderr=True, highlight=False)
        self.steps: list[Step] = []
        self._heartbeat = heartbeat

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Run one step; print its duration at the end, and whether it failed."""
        step = Step(title)
        self.steps.append(step)
        try:
            with self._alive(step):
                yield step
        except BaseException:
            step.seconds = time.monotonic() - step.began
            self._line("✗", "red", step)
            raise
        step.seconds = time.monotonic() - step.began
        self._line("✓", "green", step)

    def say(self, text: str) -> None:
        """Print a line between the steps."""
        with contextlib.suppress(OSError):  # the work continues if the terminal or the pipe was closed
            self.console.print(show_controls(text), markup=False)

    def _line(self, mark: str, colour: str, step: Step) -> None:
        busy = f" ({step.doing})" if step.doing else ""
        with contextlib.suppress(OSError):
            self.console.print(f"[{colour}]{mark}[/] ", end="")
            self.console.print(f"{step.title}{busy}  {step.seconds:.1f} s", markup=False)

    @contextlib.contextmanager
    def _alive(self, step: Step) -> Iterator[None]:
        """Show a spinner on a terminal; elsewhere print a line every `heartbeat` seconds, so that a CI job does not seem to hang."""
        ended = threading.Event()
        beat = threading.Thread(target=self._beat, args=(step, ended), daemon=True)
        beat.start()
        try:
            yield
        finally:
            ended.set()
            beat.join()

    def _beat(self, step: Step, ended: threading.Event) -> None:
        if self.console.is_terminal:
            with contextlib.suppress(OSError), self.console.status(step.title) as status:
                while not ended.wait(0.2):
                    status.update(f"{step.title} [dim]{step.doing} {time.monotonic() - step.began:.0f} s[/]")
            return
        while not ended.wait(self._heartbeat):
            self.say(f"… {step.title}: {step.doing or 'working'}, {time.monotonic() - step.began:.0f} s so far")


class Silent(Progress):
    """A Progress that prints nothing."""

    def __init__(self) -> None:
        super().__init__(Console(quiet=True))
