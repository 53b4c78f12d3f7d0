"""The only place that starts, finds and ends processes. Everybody above the floor calls it; nobody else imports subprocess."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import CommandFailed, TestbedError
from testbed.interrupts import deferred_interrupts
from testbed.waiting import Budget, eventually_true


@dataclass(frozen=True)
class Completed:
    """What a finished program said."""

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """Whether it ended with 0."""
        return self.code == 0


@dataclass(frozen=True)
class ProcessId:
    """A process that cannot be mistaken for a later one with the same number: its id and when it started, in clock ticks since boot."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """The identity of a process that lives now; a zombie does not."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else cls(pid, int(fields[19]))

    @property
    def alive(self) -> bool:
        """Whether exactly this process still runs."""
        return ProcessId.of(self.pid) == self


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    check: bool = True,
    timeout: float | None = 60,
    input: str | None = None,  # noqa: A002 - the name that subprocess and everybody else uses
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    hint: str = "",
) -> Completed:
    """Run a program to its end and keep what it said. A missing program, a bad status and a time-out are all CommandFailed.

    It is in a process group of its own: when its time is over, or we are interrupted, all that it has started ends with it.
    """
    words = tuple(os.fspath(word) for word in argv)
    try:
        child = subprocess.Popen(
            words, env=env, cwd=cwd, text=True, errors="replace", process_group=0,
            stdin=subprocess.DEVNULL if input is None else subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as refused:
        raise _not_started(words, refused, hint) from refused
    try:
        stdout, stderr = child.communicate(input, timeout=timeout)
    except subprocess.TimeoutExpired as late:
        raise CommandFailed(words, f"no answer in {timeout:g} s", _final_output(child), hint=hint) from late
    finally:
        _end_group(child)
    if check and child.returncode:
        raise CommandFailed(words, f"exit {child.returncode}", stderr or stdout, hint=hint)
    return Completed(words, child.returncode, stdout, stderr)


def start(
    argv: Sequence[str | os.PathLike[str]],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: int = subprocess.DEVNULL,
) -> ProcessId:
    """Start a program that outlives us, in a session of its own, its output appended to `log`. `stdin` is an open file's number."""
    words = [os.fspath(word) for word in argv]
    with log.open("ab") as sink:
        try:
            child = subprocess.Popen(
                words,
                env=env,
                cwd=cwd,
                stdin=stdin,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        except OSError as refused:
            raise _not_started(words, refused) from refused
    child.returncode = 0  # it is not Popen's to wait for: whoever asks for it later does so by its id
    _children.add(child.pid)
    return ProcessId.of(child.pid) or ProcessId(child.pid, 0)


def kill_with_parent(argv: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The same command, ended by the kernel when we die, even of SIGKILL: for work that must not go on without us."""
    return ["setpriv", "--pdeathsig", "KILL", "--", *(os.fspath(word) for word in argv)]


class UnexpectedExit(TestbedError):
    """A program that should have stayed has ended."""


def call(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    what: str = "what was started",
    say: Callable[[str], None] = lambda _: None,
    politely: signal.Signals = signal.SIGINT,
) -> int:
    """Run a program with our own terminal and give its status back; an interrupt is passed on, and we wait until it has cleaned up.

    It is in a process group of its own, so that it hears of an interrupt once, from us, whether the terminal or somebody's `kill` sent it.
    The interrupt is answered with `say`, about `what`, and reaches the program as the signal `politely`. Who interrupts again, not just
    twice at once, has the program ended, and gets his interrupt himself.
    """
    words = [os.fspath(word) for word in argv]
    with _held_signals() as let_go:
        try:
            child = subprocess.Popen(words, env=env, cwd=cwd, process_group=0)
        except OSError as refused:
            raise _not_started(words, refused) from refused
        with child:
            try:
                let_go()
                return child.wait()
            except KeyboardInterrupt:
                return _told(child, politely, what, say)
            except SystemExit:  # a SIGTERM or SIGHUP that only we got: the child shall clean up as well
                _told(child, signal.SIGTERM, what, say)
                raise
            finally:
                _end(child)


def _told(child: subprocess.Popen[bytes], number: signal.Signals, what: str, say: Callable[[str], None]) -> int:
    """Tell it once, and wait until it has cleaned up, or until somebody asks once more."""
    try:
        with deferred_interrupts(say, f"interrupted: {what} cleans up first", "it is ended at once", asked=True):
            child.send_signal(number)
            return child.wait()
    finally:
        _end(child)


@contextlib.contextmanager
def _held_signals() -> Iterator[Callable[[], None]]:
    """Keep signals that ask us to end back until `let_go`, so that none comes when a child runs already but nobody would end it."""
    came: list[int] = []
    held: dict[int, Any] = {}

    def let_go() -> None:
        while held:
            signal.signal(*held.popitem())
        while came:
            signal.raise_signal(came.pop())

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) not in (None, signal.SIG_IGN):  # a child inherits deafness, and shall
                held[number] = signal.signal(number, lambda caught, _: came.append(caught))
    try:
        yield let_go
    finally:
        let_go()


@contextlib.contextmanager
def stream(
    argv: Sequence[str | os.PathLike[str]], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Iterator[Iterator[str]]:
    """Run a program and read its output (both streams) line by line while it works; leaving early ends it."""
    words = [os.fspath(word) for word in argv]
    seen: list[str] = []
    complete = False

    def lines(source: Iterator[str]) -> Iterator[str]:
        nonlocal complete
        for line in source:
            seen.append(line)
            yield line.rstrip("\n")
        complete = True

    try:
        child = subprocess.Popen(
            words, env=env, cwd=cwd, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except OSError as refused:
        raise _not_started(words, refused) from refused
    assert child.stdout is not None  # noqa: S101 - it was asked for two lines above
    try:
        yield lines(iter(child.stdout))
        if complete and child.wait():
            raise CommandFailed(words, f"exit {child.returncode}", "".join(seen))
    finally:
        _end(child)
        child.stdout.close()


def alive(process: ProcessId) -> bool:
    """Whether the process runs; reaps it when it was a child of ours and has ended."""
    if process.pid in _children:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)
    return process.alive


def kill(process: ProcessId, *, grace: float = 0.0) -> None:
    """End a process: SIGTERM and `grace` seconds to obey when a grace is given, then SIGKILL. A process that is gone is fine."""
    if grace > 0 and _signal(process, signal.SIGTERM) and _gone_within(process, grace):
        return
    if _signal(process, signal.SIGKILL) and not _gone_within(process, 10):
        raise TestbedError(
            f"process {process.pid} does not die, even of SIGKILL", hint=f"look at /proc/{process.pid}/stack"
        )


def pid_namespace() -> str:
    """The PID namespace that our process ids mean something in."""
    return str(Path("/proc/self/ns/pid").readlink())


def boot_id() -> str:
    """This host since it was started: process ids of another boot, or of another host, mean nothing here."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def kill_all(processes: Iterable[ProcessId]) -> None:
    """End many processes at once: all are hit first, then all are waited for."""
    doomed = list(processes)
    for each in doomed:
        _signal(each, signal.SIGKILL)
    for each in doomed:
        kill(each)


def processes_with_variable(variable: str) -> dict[ProcessId, str]:
    """Every process of this host that carries the environment variable, with its value. How leftovers are found without a list."""
    prefix = f"{variable}=".encode()
    found: dict[ProcessId, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            values = [v for v in (entry / "environ").read_bytes().split(b"\0") if v.startswith(prefix)]
            process = ProcessId.of(int(entry.name))
            if values and process:
                found[process] = values[0][len(prefix) :].decode(errors="replace")
    return found


_GRACE = 5.0  # seconds between a polite and a final signal, for a program that cleans up after itself
_children: set[int] = set()


def _not_started(words: Sequence[str], why: OSError, hint: str = "") -> CommandFailed:
    missing = isinstance(why, FileNotFoundError) and why.filename == words[0]
    cure = hint or (f"install {words[0]}" if missing else "")
    return CommandFailed(words, "not found" if missing else "cannot be started", str(why), hint=cure)


def _final_output(child: subprocess.Popen[str]) -> str:
    """End a program that is late, with all that it has started; what it said until now."""
    _end_group(child)
    try:
        stdout, stderr = child.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:  # somebody who has left its group still holds its output
        return "(it does not let go of its output)"
    return stderr or stdout


def _end_group(child: subprocess.Popen[str]) -> None:
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _end(child: subprocess.Popen[Any]) -> None:
    if child.poll() is not None:
        return
    child.terminate()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE)
    finally:  # also when somebody does not want to wait for so long
        if child.poll() is None:
            child.kill()
            child.wait()


def _signal(process: ProcessId, number: signal.Signals) -> bool:
    if not alive(process):
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, number)
        return True
    return False


def _gone_within(process: ProcessId, seconds: float) -> bool:
    budget = Budget("process end", seconds, "a program that was asked to stop")
    return eventually_true(lambda: not alive(process), budget, longest_pause=0.02)
