"""What a second Ctrl-C does while the first one's cleaning up is under way."""

import signal
import sys
from collections.abc import Iterator

import pytest

from testbed import interrupts, process
from testbed.interrupts import deferred_interrupts

SAID = "cleaning up; once more: it stays"


@pytest.fixture(autouse=True)
def _as_a_program() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_between_is_answered_and_the_work_comes_to_its_end(number: signal.Signals) -> None:
    said: list[str] = []
    handler = signal.getsignal(signal.SIGTERM)
    done = False
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with deferred_interrupts(said.append, "cleaning up", "it stays"):
        signal.raise_signal(number)
        signal.raise_signal(number)  # a terminal and a parent tell of one Ctrl-C
        done = True
    signal.signal(signal.SIGTERM, handler)
    assert done
    assert said == [SAID]


def interrupted_twice(said: list[str]) -> None:
    with deferred_interrupts(said.append, "cleaning up", "it stays"):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


def test_who_asks_again_is_obeyed_and_told_what_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(interrupts, "_AT_ONCE", 0)
    with pytest.raises(KeyboardInterrupt):
        interrupted_twice(said)
    assert said == [SAID, "it stays"]


def test_who_was_asked_before_answers_at_once_and_takes_what_comes_with_it_for_the_same() -> None:
    said: list[str] = []
    with deferred_interrupts(said.append, "cleaning up", "it stays", asked=True):
        assert said == [SAID]
        signal.raise_signal(signal.SIGINT)
    assert said == [SAID]


def test_who_asks_again_can_end_the_process_without_a_traceback() -> None:
    code = (
        "import signal\nfrom testbed import interrupts\ninterrupts._AT_ONCE = 0\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with interrupts.deferred_interrupts(print, 'a', 'b', asked=True, ends=True):\n    signal.raise_signal(signal.SIGINT)\n"
    )
    done = process.run([sys.executable, "-c", code], check=False)
    assert (done.code, done.stderr) == (-signal.SIGINT, "")


def test_afterwards_signals_mean_what_they_did() -> None:
    with deferred_interrupts(print, "cleaning up", "it stays"):
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_who_is_deaf_stays_deaf() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with deferred_interrupts(print, "cleaning up", "it stays"):
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
