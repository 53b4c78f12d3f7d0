"""Turn every exception, signal and broken pipe into one message on stderr and an exit code. Called by `main`."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from testbed import folders
from testbed.errors import FREE_DISK_SPACE, CommandFailed, TestbedError
from testbed.redaction import redactor

_STOPPED = {signal.SIGTERM: 143, signal.SIGHUP: 129}


class Stopped(SystemExit):
    """Raised by a signal handler, so that every `finally` runs."""

    def __init__(self, by: signal.Signals) -> None:
        super().__init__(_STOPPED[by])
        self.by = by


def exit_code_of(work: Callable[[], None], *, debug: bool = False) -> int:
    """Do the work and return its exit code. Errors are printed."""
    debug = debug or bool(os.environ.get("DRA_TESTBED_DEBUG"))
    try:
        with _stopped_by_signals():
            work()
            sys.stdout.flush()
    except (click.exceptions.Exit, SystemExit) as end:
        return _ended(end)
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted", code=130)
    except BaseException as failure:  # noqa: BLE001 - the last place that can report it
        if isinstance(failure, OSError) and _reader_closed():
            return 141
        if debug:
            traceback.print_exc()
        return _explain(failure, debug=debug)
    return 0


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise Stopped during the work, unless they are ignored (nohup)."""
    before = {number: signal.getsignal(number) for number in _STOPPED}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, _: FrameType | None) -> NoReturn:
    raise Stopped(signal.Signals(number))


def _ended(end: SystemExit | click.exceptions.Exit) -> int:
    if isinstance(end, click.exceptions.Exit):
        return end.exit_code
    if isinstance(end, Stopped):
        return _say(f"stopped by {end.by.name}", code=_STOPPED[end.by])
    if isinstance(end.code, int) or end.code is None:
        return end.code or 0
    return _say(f"error: {end.code}")


def _explain(failure: BaseException, *, debug: bool) -> int:
    if isinstance(failure, TestbedError):
        notes = [str(note) for note in getattr(failure, "__notes__", ())]
        if isinstance(failure, CommandFailed) and failure.disk_full:
            notes.insert(0, f"disk full: {_fullest()}")
        return _say("error: " + "\n".join([failure.what, *notes]), failure.hint, failure.exit_code)
    if isinstance(failure, click.ClickException):
        return _misused(failure)
    if isinstance(failure, OSError) and failure.errno in {errno.ENOSPC, errno.EDQUOT}:
        if _output_full():
            return _say("error: standard output: no space left", "write to another disk, or free some space on it")
        where = failure.filename or _fullest()
        return _say(f"error: disk full: {where}", FREE_DISK_SPACE)
    if isinstance(failure, PermissionError) and failure.filename and _in_state_folder(failure.filename):
        return _say(*_of_another_user(failure))
    what = f"error: unexpected {type(failure).__name__}: {failure}"
    return _say(what, "" if debug else f"report it with its traceback: {_kept_traceback()}")


def _misused(failure: click.ClickException) -> int:
    message = failure.format_message()
    if message.startswith("Usage:"):  # a group without a command: click's message is its help
        return _say(message, code=2)
    context = getattr(failure, "ctx", None)
    return _say(f"error: {message}", _usage_hint(context, message) if context else "", code=2)


def _usage_hint(context: click.Context, message: str) -> str:
    """Return a command that shows the usage, or where what was given as an argument belongs."""
    surplus = re.search(r"unexpected extra argument \((\S+)\)", message)
    if surplus and context.params.get("known"):
        return f"--known takes no file: leave out {surplus[1]}; the list is spec.known of the driver file"
    takes_name = any("--name" in each.opts for each in context.command.params)
    return f"{context.command_path} --name {surplus[1]}" if surplus and takes_name else f"{context.command_path} --help"


def _say(what: str, hint: str = "", code: int = 3) -> int:
    with contextlib.suppress(OSError):
        click.echo(redactor.redact("\n".join([what, f"try: {hint}"] if hint else [what])), err=True)
    return code


def _reader_closed() -> bool:
    """Return True if the reader of stdout has closed it, as `head` does. Then nothing is printed any more."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
        gone = any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False
    if gone:
        _discard_output()
    return gone


def _discard_output() -> None:
    """Discard what Python has not written to stdout yet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _in_state_folder(file: str | bytes | int) -> bool:
    return isinstance(file, str) and Path(file).absolute().is_relative_to(folders.state())


def _of_another_user(refused: PermissionError) -> tuple[str, str]:
    """Return the error for a state folder of another user, and what to try."""
    folder = folders.state()
    hint = "use sudo, or another DRA_TESTBED_STATE"
    return (
        f"error: the state folder {folder} belongs to {folders.owner_of(folder)}: {refused.filename}: {refused.strerror}",
        hint,
    )


def _output_full() -> bool:
    """Return True if stdout is on a full disk, which only a write shows. Then nothing is printed there any more."""
    try:
        os.write(sys.stdout.fileno(), b"\n")
    except (OSError, ValueError) as refused:
        full = isinstance(refused, OSError) and refused.errno in {errno.ENOSPC, errno.EDQUOT}
        if full:
            _discard_output()
        return full
    return False


def _fullest() -> Path:
    """Return the folder with the least free space, because a failed write does not say where it was."""
    used = [folders.cache(), folders.state(), Path(tempfile.gettempdir())]
    return min(used, key=lambda folder: shutil.disk_usage(folder).free)


def _kept_traceback() -> str:
    """Write the traceback to a file and return its path, or return the traceback if no file can be written."""
    text = redactor.redact(traceback.format_exc())
    try:
        folder = folders.state() / ".crashes"
        folder.mkdir(exist_ok=True)
        file = folder / f"{os.getpid()}.txt"
        file.write_text(text)
    except (OSError, TestbedError):
        return f"\n{text}"
    return str(file)
