"""Messages and exit codes of commands."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from testbed import folders, process
from testbed.cli import exit_codes
from testbed.cli.exit_codes import exit_code_of
from testbed.errors import CommandFailed, DriverFailed, Incomplete, TestbedError, UsageError

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DRA_TESTBED_DEBUG", raising=False)
    return tmp_path / "state"


def raising(failure: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise failure

    return work


def test_success_is_0_and_prints_nothing(capsys: Captured) -> None:
    assert exit_code_of(lambda: None) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("failure", "code"),
    [(TestbedError("x"), 3), (UsageError("x"), 2), (DriverFailed("x"), 1), (Incomplete("x"), 4)],
)
def test_errors_have_the_exit_code_of_their_class(failure: TestbedError, code: int, capsys: Captured) -> None:
    assert exit_code_of(raising(failure)) == code
    assert capsys.readouterr().err == "error: x\n"


def test_an_error_is_followed_by_its_notes_and_its_hint(capsys: Captured) -> None:
    failure = TestbedError("it broke", hint="mend it")
    failure.add_note("  logs: /here")

    exit_code_of(raising(failure))

    assert capsys.readouterr().err == "error: it broke\n  logs: /here\ntry: mend it\n"


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (click.Abort(), 130, "interrupted\n"),
        (click.exceptions.Exit(4), 4, ""),
        (SystemExit(3), 3, ""),
        (SystemExit(None), 0, ""),
        (SystemExit("no good"), 3, "error: no good\n"),
        (click.UsageError("bad words"), 2, "error: bad words\n"),
    ],
)
def test_interrupts_and_exits_have_their_exit_codes(
    failure: BaseException, code: int, said: str, capsys: Captured
) -> None:
    assert exit_code_of(raising(failure)) == code
    assert capsys.readouterr().err == said


def test_a_full_disk_is_named_with_the_file(capsys: Captured) -> None:
    assert exit_code_of(raising(OSError(errno.ENOSPC, "No space left on device", "/full/file"))) == 3

    said = capsys.readouterr().err
    assert said.startswith("error: disk full: /full/file\ntry: free disk space")


def test_without_a_file_the_fullest_folder_is_named(state: Path, capsys: Captured) -> None:
    assert exit_code_of(raising(OSError(errno.ENOSPC, "No space left on device"))) == 3

    assert "disk full: /" in capsys.readouterr().err


def test_a_full_disk_that_a_program_reports_is_named(state: Path, capsys: Captured) -> None:
    failed = CommandFailed(["ctr", "import"], "exit 1", "ctr: write /x: no space left on device")
    assert exit_code_of(raising(failed)) == 3

    said = capsys.readouterr().err
    assert "no space left on device\ndisk full: /" in said
    assert said.endswith("try: free disk space, or move DRA_TESTBED_CACHE and DRA_TESTBED_STATE\n")


def test_the_traceback_of_an_unexpected_error_is_in_a_file(state: Path, capsys: Captured) -> None:
    assert exit_code_of(raising(KeyError("surprise"))) == 3

    (kept,) = (state / ".crashes").iterdir()
    assert capsys.readouterr().err == (
        f"error: unexpected KeyError: 'surprise'\ntry: report it with its traceback: {kept}\n"
    )
    assert "Traceback" in kept.read_text()


def test_the_traceback_is_printed_if_no_file_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "file/state"))

    assert exit_code_of(raising(KeyError("surprise"))) == 3
    assert "Traceback" in capsys.readouterr().err


def test_debug_prints_tracebacks_of_all_errors(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    assert exit_code_of(raising(UsageError("x")), debug=True) == 2
    assert "Traceback" in capsys.readouterr().err

    monkeypatch.setenv("DRA_TESTBED_DEBUG", "1")
    assert exit_code_of(raising(KeyError("surprise"))) == 3
    assert capsys.readouterr().err.count("Traceback") == 1


def test_a_broken_pipe_other_than_stdout_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr(exit_codes, "_reader_closed", lambda: False)

    assert exit_code_of(raising(BrokenPipeError(errno.EPIPE, "Broken pipe"))) == 3
    assert "unexpected BrokenPipeError" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_run_every_finally(number: signal.Signals, code: int, capsys: Captured) -> None:
    outside = signal.signal(number, signal.SIG_DFL)  # under nohup, SIGHUP is ignored
    cleaned = []

    def work() -> None:
        try:
            os.kill(os.getpid(), number)
        finally:
            cleaned.append("yes")

    try:
        assert exit_code_of(work) == code
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, outside)
    assert cleaned == ["yes"]
    assert capsys.readouterr().err == f"stopped by {number.name}\n"


def test_a_signal_that_was_ignored_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert exit_code_of(lambda: os.kill(os.getpid(), signal.SIGHUP)) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_state_folder_of_another_user_is_named_with_its_owner(state: Path, capsys: Captured) -> None:
    assert exit_code_of(raising(PermissionError(errno.EACCES, "Permission denied", str(state / ".locks")))) == 3
    said = capsys.readouterr().err
    assert f"the state folder {state} belongs to {folders.owner_of(state)}: {state / '.locks'}" in said
    assert "try: use sudo, or another DRA_TESTBED_STATE" in said
    assert "Traceback" not in said
    assert "unexpected" not in said


def test_a_permission_error_elsewhere_is_unexpected(capsys: Captured) -> None:
    exit_code_of(raising(PermissionError(errno.EACCES, "Permission denied", "/elsewhere")))
    assert "unexpected PermissionError" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["run", "--plan"], ["list"], ["explain", "SHARE-001"], ["run", "--help"]])
def test_a_closed_reader_of_stdout_is_not_an_error(words: list[str]) -> None:
    nobody_reads = (
        "import os, sys; r, w = os.pipe(); os.close(r); os.dup2(w, 1); os.execv(sys.executable, sys.argv[1:])"
    )
    ours = [sys.executable, "-m", "testbed.cli.main", *words]
    done = process.run([sys.executable, "-c", nobody_reads, *ours], check=False)

    assert (done.code, done.stderr) == (141, "")


def test_a_full_stdout_is_not_reported_as_a_full_state_folder() -> None:
    done = process.run(
        ["sh", "-c", f"exec {sys.executable} -m testbed.cli.main hardware list > /dev/full"], check=False
    )

    assert done.code == 3
    assert done.stderr.startswith("error: standard output: no space left")
