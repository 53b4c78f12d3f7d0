"""Lets clean-up finish although the user interrupts. Everything that removes a testbed or its objects uses `deferred_interrupts`."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SAME_INTERRUPT = 1.0  # seconds: a terminal and a parent process, such as tox, both forward the same Ctrl-C


@contextlib.contextmanager
def deferred_interrupts(
    say: Callable[[str], None], what: str, otherwise: str, *, asked: bool = False, ends: bool = False
) -> Iterator[None]:
    """Report the first signal without obeying it; the next one has its usual effect.

    `what` and `otherwise` describe the clean-up and what a second signal does. With `asked`, the first signal has come already and is
    reported now. With `ends`, the second signal ends this process without a traceback.
    """
    before: dict[int, Any] = {}
    times: list[float] = []

    def answer(number: int, _: FrameType | None) -> None:
        times.append(time.monotonic())
        if len(times) == 1:
            say(f"{what}; on a second interrupt: {otherwise}")
        elif times[-1] - times[0] > _SAME_INTERRUPT:
            say(otherwise)
            _restore(before)
            if ends:
                signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    if threading.current_thread() is threading.main_thread():
        for number in _INTERRUPTS:
            if signal.getsignal(number) not in (None, signal.SIG_IGN):
                before[number] = signal.signal(number, answer)
    try:
        if asked:
            answer(signal.SIGINT, None)
        yield
    finally:
        _restore(before)


def _restore(before: dict[int, Any]) -> None:
    while before:
        signal.signal(*before.popitem())
