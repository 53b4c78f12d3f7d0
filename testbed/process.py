"""The only module that starts, finds and kills processes; no other module imports subprocess."""

from __future__ import annotations

import contextlib
import errno
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

NO_INPUT = subprocess.DEVNULL


@dataclass(frozen=True)
class Completed:
    """The exit code and the output of a program."""

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """Return True if the exit code is 0."""
        return self.code == 0


@dataclass(frozen=True)
class ProcessId:
    """A process ID with the start time in clock ticks since boot, so that a later process with the same ID is not mistaken for it."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """Return the identity of a running process; None if there is none, or only a zombie.

        A zombie with other threads still runs: until they have ended, too, it keeps its sockets and locks.
        """
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        is_over = fields[0] in "ZX" and int(fields[17]) <= 1
        return None if is_over else cls(pid, int(fields[19]))

    @property
    def alive(self) -> bool:
        """Return True if exactly this process still runs."""
        return ProcessId.of(self.pid) == self


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    check: bool = True,
    timeout: float | None = 60,
    input: str | None = None,  # noqa: A002 - the name that subprocess uses
    stdin: int = NO_INPUT,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    hint: str = "",
) -> Completed:
    """Run a program and return its output. Raise CommandFailed if it is missing, exits non-zero or times out.

    Its standard input is the text `input`, or else the file descriptor `stdin`.
    It runs in its own process group: after a timeout or an interrupt, its child processes are killed too.
    """
    words = tuple(os.fspath(word) for word in argv)
    try:
        child = subprocess.Popen(
            words, env=env, cwd=cwd, text=True, errors="replace", process_group=0,
            stdin=stdin if input is None else subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as refused:
        raise _not_started(words, refused, hint) from refused
    try:
        stdout, stderr = child.communicate(input, timeout=timeout)
    except subprocess.TimeoutExpired as late:
        raise CommandFailed(words, f"timed out after {timeout:g} s", _final_output(child), hint=hint) from late
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
    stdin: int = NO_INPUT,
) -> ProcessId:
    """Start a program in its own session, so that it outlives this process; append its output to `log`. `stdin` is a file descriptor."""
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
    child.returncode = 0  # keeps Popen from waiting for it; `alive` does so by process ID
    _children.add(child.pid)
    return ProcessId.of(child.pid) or ProcessId(child.pid, 0)


def kill_with_parent(argv: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return the command line in a form that the kernel kills when this process dies, even of SIGKILL."""
    return ["setpriv", "--pdeathsig", "KILL", "--", *(os.fspath(word) for word in argv)]


class UnexpectedExit(TestbedError):
    """A program that should keep running has exited."""


def call(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    what: str = "the program",
    say: Callable[[str], None] = lambda _: None,
    interrupt: signal.Signals = signal.SIGINT,
) -> int:
    """Run a program on our terminal and return its exit code. Forward an interrupt to it, and wait until it has cleaned up.

    It runs in its own process group, so that it gets an interrupt exactly once, from us, whether the terminal or `kill` sent it.
    The interrupt is reported through `say`, naming `what`, and forwarded as the signal `interrupt`. A second interrupt kills the
    program and is then raised here; two that come within a second count as one.
    """
    words = [os.fspath(word) for word in argv]
    with _held_signals() as release:
        try:
            child = subprocess.Popen(words, env=env, cwd=cwd, process_group=0)
        except OSError as refused:
            raise _not_started(words, refused) from refused
        with child:
            try:
                release()
                return child.wait()
            except KeyboardInterrupt:
                return _interrupt(child, interrupt, what, say)
            except SystemExit:  # a SIGTERM or SIGHUP that only this process got: the child must clean up too
                _interrupt(child, signal.SIGTERM, what, say)
                raise
            finally:
                _end(child)


def _interrupt(child: subprocess.Popen[bytes], number: signal.Signals, what: str, say: Callable[[str], None]) -> int:
    """Send the signal, and wait until the program has cleaned up, or until a second interrupt."""
    try:
        with deferred_interrupts(say, f"interrupted: {what} cleans up first", "it is killed", asked=True):
            child.send_signal(number)
            return child.wait()
    finally:
        _end(child)


@contextlib.contextmanager
def _held_signals() -> Iterator[Callable[[], None]]:
    """Hold back interrupts until the caller releases them, so that none comes between starting a child and handling its end."""
    received: list[int] = []
    held: dict[int, Any] = {}

    def release() -> None:
        while held:
            signal.signal(*held.popitem())
        while received:
            signal.raise_signal(received.pop())

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) not in (None, signal.SIG_IGN):  # a child must inherit an ignored signal
                held[number] = signal.signal(number, lambda caught, _: received.append(caught))
    try:
        yield release
    finally:
        release()


@contextlib.contextmanager
def stream(
    argv: Sequence[str | os.PathLike[str]], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Iterator[Iterator[str]]:
    """Run a program and yield its output (both streams) line by line as it comes. Leaving the block early kills the program."""
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
    assert child.stdout is not None  # noqa: S101 - it is a pipe, see above
    try:
        yield lines(iter(child.stdout))
        if complete and child.wait():
            raise CommandFailed(words, f"exit {child.returncode}", "".join(seen))
    finally:
        _end(child)
        child.stdout.close()


def alive(process: ProcessId) -> bool:
    """Return True if the process runs. Reap it if it is a child of this process that has ended."""
    if process.pid in _children:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)
    return process.alive


def is_stopped(process: ProcessId) -> bool:
    """Return True if a signal stopped the process (SIGSTOP): it exists, and does nothing."""
    try:
        return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def kill(process: ProcessId, *, grace: float = 0.0) -> None:
    """Kill a process if it still runs: with a grace period by SIGTERM first, then by SIGKILL."""
    if grace > 0 and _signal(process, signal.SIGTERM) and _gone_within(process, grace):
        return
    if _signal(process, signal.SIGKILL) and not _gone_within(process, 10):
        raise TestbedError(
            f"process {process.pid} still runs 10 s after SIGKILL",
            hint=f"/proc/{process.pid}/stack shows where the kernel blocks it",
        )


def pid_namespace() -> str:
    """Return the PID namespace of this process; process IDs are only valid in it."""
    return str(Path("/proc/self/ns/pid").readlink())


def boot_id() -> str:
    """Return the ID of this host's boot; process IDs are only valid until the next boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def kill_all(processes: Iterable[ProcessId]) -> None:
    """Kill many processes: signal all of them first, then wait for all."""
    targets = list(processes)
    for each in targets:
        _signal(each, signal.SIGKILL)
    for each in targets:
        kill(each)


def has_variable(process: ProcessId, variable: str, value: str) -> bool:
    """Return True if exactly this process runs, with that value of an environment variable."""
    try:
        environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"{variable}={value}".encode() in environment and process.alive


def processes_with_variable(variable: str) -> dict[ProcessId, str]:
    """Return the processes of this host that have the environment variable, with its value. This finds orphaned processes."""
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


_GRACE = 5.0  # seconds between SIGTERM and SIGKILL, for programs that clean up
_children: set[int] = set()


def _not_started(words: Sequence[str], why: OSError, hint: str = "") -> CommandFailed:
    missing = isinstance(why, FileNotFoundError) and why.filename == words[0]
    cure = hint or (f"install {words[0]}" if missing else "")
    return CommandFailed(words, "not found" if missing else "cannot be started", str(why), hint=cure)


def _final_output(child: subprocess.Popen[str]) -> str:
    """Kill a program that timed out, with its child processes; return its output so far."""
    _end_group(child)
    try:
        stdout, stderr = child.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:  # a process that left its group still has its output open
        return "(no output: one of its child processes keeps it open)"
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
    finally:  # also if an interrupt ends the wait
        if child.poll() is None:
            child.kill()
            child.wait()


def _signal(process: ProcessId, number: signal.Signals) -> bool:
    if not alive(process):
        return False
    with contextlib.suppress(ProcessLookupError):
        handle = _open(process)
        if handle is None:
            os.kill(process.pid, number)
            return True
        try:
            if not process.alive:  # another process got the ID before the handle was opened
                return False
            signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)
        return True
    return False


def _open(process: ProcessId) -> int | None:
    """Return a handle that keeps naming the same process when its ID is used again; None if the kernel has no such handles."""
    try:
        return os.pidfd_open(process.pid)
    except OSError as refused:
        if refused.errno in (errno.ENOSYS, errno.EPERM, errno.EINVAL):  # before Linux 5.3, or in a sandbox
            return None
        raise


def _gone_within(process: ProcessId, seconds: float) -> bool:
    budget = Budget("process end", seconds, "a program that was asked to stop")
    return eventually_true(lambda: not alive(process), budget, longest_pause=0.02)
