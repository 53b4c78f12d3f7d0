"""The report folder: reserved by one run at a time, emptied before the next one. For `runs`, `reporting`, `bench` and the plugin."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import filelock

from testbed.conformance import events
from testbed.errors import TestbedError, UsageError
from testbed.redaction import redactor

RESERVED_BY = (
    "DRA_TESTBED_REPORT_RESERVED_BY"  # the process that reserved the report folder for the pytest that it started
)
_MADE_FROM_EVENTS = ("report.yaml", "junit.xml", events.FILE)
_NEW = ".new"  # the suffix of a file that is about to replace another one
_EVIDENCE = "evidence"
_BRING_UP = "bring-up"  # below it: the logs of a testbed that was made for the run and did not come up
_RUN_LOCK, _LOG_LOCK = ".run.lock", ".events.lock"


@contextlib.contextmanager
def reserve(folder: Path) -> Iterator[None]:
    """Be the only run that reports into the folder. UsageError if another run does, or if the folder is not a report folder.

    A folder that was created for a run in which nothing happened is removed again.
    """
    _refuse_foreign(folder)
    created = [each for each in (folder, *folder.parents) if not each.exists()]
    with _locked(folder, _RUN_LOCK):
        try:
            with _locked(folder, _LOG_LOCK):
                pass  # held if a pytest is still writing whose `dra-testbed run` was killed
            yield
        finally:
            _remove_unused(created)


@contextlib.contextmanager
def lock_log(folder: Path) -> Iterator[None]:
    """Be the only process that writes the log. Reserves the folder, unless the parent process did it."""
    with contextlib.ExitStack() as held:
        if not reserved_by_parent():
            held.enter_context(reserve(folder))
        held.enter_context(_locked(folder, _LOG_LOCK))
        yield


def reserved_by_parent() -> bool:
    """Return True if the parent process has reserved the report folder: it is `dra-testbed run`, which forwards signals."""
    return os.environ.get(RESERVED_BY) == str(os.getppid())


def start_report(folder: Path) -> None:
    """Replace the report of an earlier run with an empty folder."""
    discard(folder)
    folder.mkdir(parents=True, exist_ok=True)


def discard(folder: Path) -> None:
    """Remove the report of an earlier run. A folder without one is not touched."""
    if events.begins_with_event(folder):
        shutil.rmtree(folder / _EVIDENCE, ignore_errors=True)
        for name in _MADE_FROM_EVENTS:
            (folder / name).unlink(missing_ok=True)
            (folder / f".{name}{_NEW}").unlink(missing_ok=True)


def replace_file(file: Path, text: str) -> None:
    """Write a file of the report atomically."""
    new = file.with_name(f".{file.name}{_NEW}")
    new.write_text(text, "utf-8")
    new.replace(file)


def write_error(folder: Path, why: OSError) -> TestbedError:
    """Return the error for a report that cannot be written."""
    return TestbedError(
        f"cannot write the report to {folder}: {why.strerror}",
        hint="free some disk space, or choose another folder: --report DIR",
    )


def keep_bring_up_logs(folder: Path, logs: Path, error: str) -> Path:
    """Copy the logs and the error of a testbed that did not come up into a reserved folder. Return the path of the copy."""
    kept = bring_up_logs(folder)
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(logs, kept, symlinks=True)
    redactor.redact_folder(kept)
    text = redactor.redact(f"dra-testbed run had no testbed:\n{error}\n")
    (kept / "error.txt").write_text(text, encoding="utf-8", errors="replace")
    return kept


def bring_up_logs(folder: Path) -> Path:
    """Return the folder for the logs of a testbed that did not come up."""
    return folder / _EVIDENCE / _BRING_UP


@contextlib.contextmanager
def _locked(folder: Path, name: str) -> Iterator[None]:
    """Hold one of the folder's locks. It is released when its holder exits, also after a kill."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / name, timeout=0)
        lock.acquire()
    except filelock.Timeout as held:
        raise UsageError(
            f"another run is writing its report to {folder}", hint="wait for it, or choose another folder: --report DIR"
        ) from held
    except OSError as refused:
        raise UsageError(f"cannot write a report to {folder}: {refused.strerror}", hint="--report DIR") from refused
    try:
        yield
    finally:
        lock.release()


def _remove_unused(created: Sequence[Path]) -> None:
    """Remove the folder and its parents if this run created them and they contain nothing but locks."""
    for each in created:
        with contextlib.suppress(OSError):
            if {path.name for path in each.iterdir()} <= {_RUN_LOCK, _LOG_LOCK}:
                for path in each.iterdir():
                    path.unlink()
                each.rmdir()


def _refuse_foreign(folder: Path) -> None:
    found = [name for name in (*_MADE_FROM_EVENTS, _EVIDENCE) if (folder / name).exists()]
    if found and not events.begins_with_event(folder):
        raise UsageError(
            f"{folder} contains {', '.join(found)}, but no report of dra-testbed",
            hint="choose another folder: --report DIR; nothing in this one was changed",
        )
