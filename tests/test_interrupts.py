"""What a second Ctrl-C does during the clean-up after the first one."""

import signal
import sys
from collections.abc import Iterator

import pytest

from testbed import interrupts, process
from testbed.interrupts import deferred_interrupts

MESSAGE = "cleaning up; on a second interrupt: it stays"


@pytest.fixture(autouse=True)
def default_interrupt_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_reported_and_the_work_finishes(number: signal.Signals) -> None:
    messages: list[str] = []
    handler = signal.getsignal(signal.SIGTERM)
    done = False
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with deferred_interrupts(messages.append, "cleaning up", "it stays"):
        signal.raise_signal(number)
        signal.raise_signal(number)  # a terminal and a parent process forward the same Ctrl-C
        done = True
    signal.signal(signal.SIGTERM, handler)
    assert done
    assert messages == [MESSAGE]


def interrupted_twice(messages: list[str]) -> None:
    with deferred_interrupts(messages.append, "cleaning up", "it stays"):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


def test_a_second_signal_is_obeyed_and_reports_what_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    monkeypatch.setattr(interrupts, "_SAME_INTERRUPT", 0)
    with pytest.raises(KeyboardInterrupt):
        interrupted_twice(messages)
    assert messages == [MESSAGE, "it stays"]


def test_with_asked_the_interrupt_is_reported_at_once_and_a_duplicate_is_ignored() -> None:
    messages: list[str] = []
    with deferred_interrupts(messages.append, "cleaning up", "it stays", asked=True):
        assert messages == [MESSAGE]
        signal.raise_signal(signal.SIGINT)
    assert messages == [MESSAGE]


def test_with_ends_a_second_signal_ends_the_process_without_a_traceback() -> None:
    code = (
        "import signal\nfrom testbed import interrupts\ninterrupts._SAME_INTERRUPT = 0\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with interrupts.deferred_interrupts(print, 'a', 'b', asked=True, ends=True):\n    signal.raise_signal(signal.SIGINT)\n"
    )
    done = process.run([sys.executable, "-c", code], check=False)
    assert (done.code, done.stderr) == (-signal.SIGINT, "")


def test_the_previous_handlers_are_restored() -> None:
    with deferred_interrupts(print, "cleaning up", "it stays"):
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_ignored_signal_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with deferred_interrupts(print, "cleaning up", "it stays"):
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
