"""Signals that come while something is cleaned up. Whoever removes what was made works under `deferred_interrupts`."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AT_ONCE = 1.0  # seconds: a terminal and a parent, such as tox, both pass on the same Ctrl-C


@contextlib.contextmanager
def deferred_interrupts(
    say: Callable[[str], None], what: str, otherwise: str, *, asked: bool = False, ends: bool = False
) -> Iterator[None]:
    """Finish in spite of somebody who is in a hurry: the first signal is answered, and the next one obeyed, as it was before.

    `asked`: the first one is why we finish, and is answered now. `ends`: the next one ends this process, without a traceback.
    """
    before: dict[int, Any] = {}
    times: list[float] = []

    def answer(number: int, _: FrameType | None) -> None:
        times.append(time.monotonic())
        if len(times) == 1:
            say(f"{what}; once more: {otherwise}")
        elif times[-1] - times[0] > _AT_ONCE:
            say(otherwise)
            _restore(before)
            if ends:
                signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    if threading.current_thread() is threading.main_thread():
        for number in _ASKING:
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
