"""events.jsonl: what happened in a run, written as it happens. Everything else in the report folder is made from it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from testbed.errors import TestbedError, UsageError

FILE = "events.jsonl"
WANTED, FAILED = "testbed-wanted", "testbed-failed"  # what happens before the suites begin, which begin the log anew
ENDS = ("run-finished", "run-stopped")  # how pytest ends: everything has run, or it was stopped and has cleaned up
RESERVED_BY = "DRA_TESTBED_REPORT_RESERVED_BY"  # tells pytest which process has reserved the report folder for it
_MADE_FROM_EVENTS = ("report.yaml", "junit.xml", FILE)
_NEW = ".new"  # how the name of a file ends that will take the place of another
_EVIDENCE = "evidence"
_BRING_UP = "bring-up"  # below it: of a testbed that was made for the run and did not come up
_ERROR, _BROKE = "error.txt", "dra-testbed run had no testbed:"  # which file says so there, and how it begins
_OURS = '{"event": "run-started"'  # how the first line of every log begins, also when a kill cut it short
_RUN_LOCK, _LOG_LOCK = ".run.lock", ".events.lock"
Event = dict[str, Any]


@dataclass(frozen=True)
class EventLog:
    """Appends events to the file of one run; each line is on its way to the disk before anything else happens."""

    folder: Path

    def begin(self) -> None:
        """Start a new run in the folder."""
        discard(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def write(self, event: str, **facts: object) -> None:
        """Append one event."""
        line = json.dumps({"event": event, "time": round(time.time(), 3), **facts}, ensure_ascii=False)
        # A driver's words may hold what is no text; it is nowhere needed as it was.
        with (self.folder / FILE).open("a", encoding="utf-8", errors="replace") as file:
            file.write(line + "\n")


def not_written(folder: Path, why: OSError) -> TestbedError:
    """What to say when the report of a run could not be kept."""
    return TestbedError(
        f"cannot write the report to {folder}: {why.strerror}", hint="make room, or choose another folder: --report DIR"
    )


@contextlib.contextmanager
def reserved(folder: Path) -> Iterator[None]:
    """Be the only run that reports into the folder. UsageError when another one does, or when it holds what is not ours.

    A folder that was made for a run of which nothing happened, because something was wrong before, is removed again.
    """
    _refuse_foreign(folder)
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    with _locked(folder, _RUN_LOCK):
        try:
            with _locked(folder, _LOG_LOCK):
                pass  # else a pytest still writes whose `dra-testbed run` was killed
            yield
        finally:
            _remove_unused(new)


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Be the only one who writes the log, in a folder that was reserved by us or, for us, by the process that started us."""
    with contextlib.ExitStack() as held:
        if not reserved_for_us():
            held.enter_context(reserved(folder))
        held.enter_context(_locked(folder, _LOG_LOCK))
        yield


def reserved_for_us() -> bool:
    """Whether the process that started us has reserved the report folder: `dra-testbed run`, which looks after us."""
    return os.environ.get(RESERVED_BY) == str(os.getppid())


def discard(folder: Path) -> None:
    """Remove what an earlier run left in a report folder. A folder that is not one is left alone."""
    if _is_ours(folder):
        shutil.rmtree(folder / _EVIDENCE, ignore_errors=True)
        for name in _MADE_FROM_EVENTS:
            (folder / name).unlink(missing_ok=True)
            (folder / f".{name}{_NEW}").unlink(missing_ok=True)


def replace(file: Path, text: str) -> None:
    """Put a file of the report into its place: whoever reads sees the old one or the new one, also after a kill."""
    new = file.with_name(f".{file.name}{_NEW}")
    new.write_text(text, "utf-8")
    new.replace(file)


def suites_began(log: Sequence[Event]) -> bool:
    """Whether the suites have begun; else the log is of a run that had, or waited for, no testbed."""
    return bool(log) and not any(each["event"] == WANTED for each in log)


def keep_bring_up(folder: Path, logs: Path, error: str) -> Path:
    """Keep the logs of a testbed that did not come up, with its error, in a folder that was reserved; returns where."""
    kept = bring_up_evidence(folder)
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(logs, kept, symlinks=True)
    (kept / _ERROR).write_text(f"{_BROKE}\n{error}\n", encoding="utf-8", errors="replace")
    return kept


def bring_up_evidence(folder: Path) -> Path:
    """Where a report folder holds the logs of a testbed that did not come up."""
    return folder / _EVIDENCE / _BRING_UP


def read(folder: Path) -> list[Event]:
    """The events of a run. The last line may be half written when the run was killed; such a line did not happen."""
    try:
        lines = (folder / FILE).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as missing:
        raise UsageError(f"{folder} is not a report folder: {missing.strerror}") from missing
    events = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            events.append(json.loads(line))
        except ValueError as broken:
            raise UsageError(f"{folder / FILE}:{number} is damaged: {broken}") from broken
    return events


@contextlib.contextmanager
def _locked(folder: Path, name: str) -> Iterator[None]:
    """Hold one of the folder's locks; it ends with its holder, however that one ends."""
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


def _remove_unused(new: Sequence[Path]) -> None:
    """The folder and those above it, as far as they were made and hold nothing but locks."""
    for each in new:
        with contextlib.suppress(OSError):
            if {path.name for path in each.iterdir()} <= {_RUN_LOCK, _LOG_LOCK}:
                for path in each.iterdir():
                    path.unlink()
                each.rmdir()


def _refuse_foreign(folder: Path) -> None:
    found = [name for name in (*_MADE_FROM_EVENTS, _EVIDENCE) if (folder / name).exists()]
    if found and not _is_ours(folder):
        raise UsageError(
            f"{folder} holds {', '.join(found)}, but no report of dra-testbed",
            hint="choose another folder: --report DIR; nothing in this one was changed",
        )


def _is_ours(folder: Path) -> bool:
    return _begins(folder / FILE, _OURS)


def _begins(file: Path, words: str) -> bool:
    try:
        with file.open("rb") as content:
            return content.read(len(words)) == words.encode()
    except OSError:
        return False
