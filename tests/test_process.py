"""Start, find and terminate real processes."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from testbed import process
from testbed.errors import CommandFailed
from testbed.process import ProcessId
from testbed.waiting import Budget, eventually_true

SOON = Budget("soon", 10, "a process starts or ends")
IGNORES_SIGTERM = "trap '' TERM; echo deaf; while :; do sleep 0.05; done"


def started(tmp_path: Path, script: str, *, says: str = "") -> ProcessId:
    log = tmp_path / "log"
    child = process.start(["sh", "-c", script], log=log)
    assert eventually_true(lambda: says in log.read_text(), SOON)
    return child


def test_a_successful_program_returns_its_output() -> None:
    done = process.run(["sh", "-c", "cat; echo oops >&2"], input="hello")

    assert (done.code, done.stdout, done.stderr) == (0, "hello", "oops\n")
    assert done.ok


def test_a_non_zero_exit_code_is_an_error_with_the_output() -> None:
    with pytest.raises(CommandFailed, match=r"exit 3(.|\n)*oops"):
        process.run(["sh", "-c", "echo oops >&2; exit 3"])


def test_without_check_a_non_zero_exit_code_is_returned() -> None:
    assert process.run(["sh", "-c", "exit 3"], check=False).code == 3


def test_the_error_for_a_missing_program_names_what_to_install() -> None:
    with pytest.raises(CommandFailed) as failed:
        process.run(["no-such-program"])

    assert failed.value.hint == "install no-such-program"


def test_a_missing_working_directory_is_not_reported_as_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="cannot be started") as failed:
        process.run(["true"], cwd=tmp_path / "gone")

    assert failed.value.hint == ""


def test_a_file_that_cannot_be_executed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")

    with pytest.raises(CommandFailed, match="cannot be started"):
        process.run([tmp_path / "text"])


def test_a_program_that_times_out_is_killed_and_its_output_is_kept() -> None:
    with pytest.raises(CommandFailed, match=r"timed out after 0\.3 s(.|\n)*thinking"):
        process.run(["sh", "-c", "echo thinking; exec sleep 60"], timeout=0.3)


def test_child_processes_of_a_program_that_times_out_are_killed() -> None:
    with pytest.raises(CommandFailed, match=r"timed out after 0\.5 s(.|\n)*began") as late:
        process.run(["sh", "-c", "echo began >&2; sleep 61.5 & echo $! >&2; wait"], timeout=0.5)
    left = int(str(late.value).split()[-1])
    assert eventually_true(lambda: ProcessId.of(left) is None, SOON)


def test_binary_output_is_accepted() -> None:
    assert process.run(["printf", r"\377"]).stdout == "\ufffd"


def test_a_started_program_writes_to_its_log_and_has_its_own_session(tmp_path: Path) -> None:
    child = started(tmp_path, "echo ready; exec sleep 60", says="ready")

    assert child.alive
    assert os.getsid(child.pid) == child.pid

    process.kill(child)
    assert not process.alive(child)


def test_the_log_is_appended_to(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("before\n")

    child = started(tmp_path, "echo after", says="after")

    assert eventually_true(lambda: not process.alive(child), SOON)
    assert (tmp_path / "log").read_text() == "before\nafter\n"


def test_a_program_that_handles_sigterm_ends_within_the_grace_period(tmp_path: Path) -> None:
    child = started(tmp_path, "trap 'echo bye; exit' TERM; echo up; while :; do sleep 0.02; done", says="up")

    process.kill(child, grace=10)

    assert "bye" in (tmp_path / "log").read_text()
    assert not child.alive


def test_a_program_that_ignores_sigterm_is_killed_after_the_grace_period(tmp_path: Path) -> None:
    child = started(tmp_path, IGNORES_SIGTERM, says="deaf")

    process.kill(child, grace=0.1)

    assert not child.alive


def test_a_process_that_has_ended_can_be_killed(tmp_path: Path) -> None:
    child = started(tmp_path, "true")
    assert eventually_true(lambda: not process.alive(child), SOON)

    process.kill(child, grace=1)


def test_many_processes_are_killed_together(tmp_path: Path) -> None:
    children = [started(tmp_path, IGNORES_SIGTERM, says="deaf") for _ in range(3)]

    process.kill_all(iter(children))

    assert not any(child.alive for child in children)


def test_a_process_with_another_start_time_is_another_process() -> None:
    me = ProcessId.of(os.getpid())

    assert me is not None
    assert me.alive
    assert not ProcessId(me.pid, me.started + 1).alive


def test_a_process_that_reuses_the_id_of_a_dead_one_is_not_killed(tmp_path: Path) -> None:
    child = started(tmp_path, "exec sleep 60")

    process.kill(ProcessId(child.pid, child.started - 1), grace=1)

    assert process.alive(child)
    process.kill(child)


def test_a_process_whose_id_is_reused_between_the_check_and_the_signal_is_not_signalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = started(tmp_path, "exec sleep 60")
    before = ProcessId(child.pid, child.started - 1)
    monkeypatch.setattr(process, "alive", lambda _: True)  # it was alive when that was checked

    assert not process._signal(before, signal.SIGKILL)

    monkeypatch.undo()
    assert process.alive(child)
    process.kill(child)


def test_a_kernel_without_process_handles_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    child = started(tmp_path, "exec sleep 60")

    process.kill(child)

    assert not process.alive(child)


def test_a_zombie_is_not_alive(tmp_path: Path) -> None:
    child = started(tmp_path, "exec sleep 60")
    os.kill(child.pid, signal.SIGKILL)

    # It was not reaped, so it is still in /proc.
    assert eventually_true(lambda: ProcessId.of(child.pid) is None, SOON)
    assert Path(f"/proc/{child.pid}").exists()
    assert not process.alive(child)


def test_processes_are_found_by_a_variable_in_their_environment(tmp_path: Path) -> None:
    marked = process.start(["sleep", "60"], log=tmp_path / "log", env={**os.environ, "DRA_TEST_MARK": "here"})

    assert eventually_true(lambda: process.processes_with_variable("DRA_TEST_MARK").get(marked) == "here", SOON)

    process.kill(marked)
    assert marked not in process.processes_with_variable("DRA_TEST_MARK")


def test_lines_are_yielded_while_the_program_runs() -> None:
    with process.stream(["sh", "-c", "echo one; echo two >&2"]) as lines:
        assert list(lines) == ["one", "two"]


def test_the_error_of_a_streamed_program_has_its_whole_output() -> None:
    def read() -> None:
        with process.stream(["sh", "-c", "echo one; exit 4"]) as lines:
            assert list(lines) == ["one"]

    with pytest.raises(CommandFailed, match=r"exit 4(.|\n)*one"):
        read()


def test_leaving_a_stream_early_terminates_its_program() -> None:
    with process.stream(["sh", "-c", "echo $$; exec sleep 60"]) as lines:
        child = ProcessId.of(int(next(lines)))

    assert child is not None
    assert not child.alive


def test_leaving_a_stream_early_kills_a_program_that_ignores_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_GRACE", 0.1)

    with process.stream(["sh", "-c", f"echo $$; {IGNORES_SIGTERM}"]) as lines:
        child = ProcessId.of(int(next(lines)))
        assert next(lines) == "deaf"

    assert child is not None
    assert not child.alive


def test_a_program_started_with_kill_with_parent_ends_with_its_parent(tmp_path: Path) -> None:
    starts = (
        "import pathlib, sys; from testbed import process; "
        "tied = process.start(process.kill_with_parent(['sleep', '1000']), log=pathlib.Path(sys.argv[1])); print(tied.pid, flush=True); "
        "sys.stdin.read()"
    )
    log = tmp_path / "log"
    reader, writer = os.pipe()
    parent = process.start([sys.executable, "-c", starts, str(tmp_path / "tied")], log=log, stdin=reader)
    os.close(reader)
    assert eventually_true(lambda: log.read_text().endswith("\n"), SOON)
    tied = ProcessId.of(int(log.read_text()))
    assert tied

    process.kill(parent)
    os.close(writer)

    assert eventually_true(lambda: not tied.alive, SOON)


def test_a_called_program_returns_its_exit_code() -> None:
    assert process.call(["sh", "-c", "exit 5"]) == 5


def test_a_missing_program_cannot_be_called() -> None:
    with pytest.raises(CommandFailed, match="not found"):
        process.call(["no-such-program"])


def test_sigterm_is_forwarded_to_a_called_program(tmp_path: Path) -> None:
    """The parent turns SIGTERM into SystemExit, as the command line does; the child must get SIGTERM too."""
    parent = tmp_path / "parent.py"
    parent.write_text(
        "import signal, sys\n"
        "from testbed import process\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        "process.call(['sh', '-c', 'trap \"echo cleaned; exit\" TERM; echo up; while :; do sleep 0.02; done'])\n"
    )
    log = tmp_path / "log"
    running = process.start(
        [sys.executable, parent], log=log, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert eventually_true(lambda: "up" in log.read_text(), SOON)

    process.kill(running, grace=10)

    assert log.read_text() == "up\ncleaned\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_arrives_while_a_program_starts_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """The signal arrives when the child already runs and Popen has not returned yet."""
    real: Any = vars(process)["subprocess"].Popen
    started: list[Any] = []

    def slow(*argv: Any, **rest: Any) -> Any:
        started.append(real(*argv, **rest))
        signal.raise_signal(number)
        return started[0]

    def leave(*_: object) -> None:
        raise SystemExit(143)

    before = signal.signal(number, leave)
    monkeypatch.setattr("subprocess.Popen", slow)
    try:
        with pytest.raises(SystemExit):
            process.call(["sleep", "60"])
        assert signal.getsignal(number) is leave
    finally:
        signal.signal(number, before)

    assert started[0].returncode == -signal.SIGTERM


def test_an_error_while_waiting_kills_the_called_program() -> None:
    def late(*_: object) -> None:
        raise TimeoutError

    before, began = signal.signal(signal.SIGALRM, late), time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(TimeoutError):
            process.call(["sleep", "60"])
    finally:
        signal.signal(signal.SIGALRM, before)

    assert time.monotonic() - began < 30


def test_an_interrupt_that_only_the_parent_got_is_forwarded(tmp_path: Path) -> None:
    parent = tmp_path / "parent.py"
    parent.write_text(
        "import signal\n"
        "from testbed import process\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell in the background ignores SIGINT for its children
        "print(process.call(['sh', '-c', 'trap \"echo heard; exit 7\" INT; echo up; while :; do sleep 0.02; done']), flush=True)\n"
    )
    log = tmp_path / "log"
    running = process.start(
        [sys.executable, parent], log=log, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert eventually_true(lambda: "up" in log.read_text(), SOON)

    os.kill(running.pid, signal.SIGINT)

    assert eventually_true(lambda: log.read_text() == "up\nheard\n7\n", SOON), log.read_text()


_CALLS = """
import signal, sys
from testbed import interrupts, process
interrupts._SAME_INTERRUPT = float(sys.argv[1])
process._GRACE = 0.5
signal.signal(signal.SIGINT, signal.default_int_handler)
script = 'trap "echo heard" INT; trap "echo ended" TERM; echo up; for i in $(seq 60); do sleep 0.05; done; exit 7'
try:
    print(process.call(['bash', '-c', script], what='it', say=lambda what: print(what, flush=True)), flush=True)
except KeyboardInterrupt:
    print('left', flush=True)
"""


def output_after_two_interrupts(tmp_path: Path, at_once: float) -> list[str]:
    """Return the output when a second interrupt follows; within `at_once` seconds both count as one."""
    log = tmp_path / "log"
    argv = [sys.executable, "-c", _CALLS, f"{at_once}"]
    ours = process.start(argv, log=log, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        for said in ("up\n", "heard\n"):
            assert eventually_true(lambda said=said: said in log.read_text(), SOON), log.read_text()  # type: ignore[misc]  # bound now
            os.kill(ours.pid, signal.SIGINT)
        assert eventually_true(lambda: log.read_text().endswith(("left\n", "7\n")), SOON), log.read_text()
    finally:
        process.kill(ours)
    return log.read_text().splitlines()


NOTICE = "interrupted: it cleans up first; on a second interrupt: it is killed"


def test_two_interrupts_within_a_second_count_as_one(tmp_path: Path) -> None:
    assert sorted(output_after_two_interrupts(tmp_path, 60)) == sorted(["up", NOTICE, "heard", "7"])


def test_a_second_interrupt_kills_the_called_program(tmp_path: Path) -> None:
    said = output_after_two_interrupts(tmp_path, 0)
    assert sorted(said[:-1]) == sorted(["up", NOTICE, "heard", "it is killed", "ended"])
    assert said[-1] == "left"


def test_a_process_runs_until_its_last_thread_has_ended(tmp_path: Path) -> None:
    """The main thread of a killed server ends first. Its successor can listen on the same port only when all threads have ended."""
    program, end = tmp_path / "program.py", tmp_path / "end"
    os.mkfifo(end)
    program.write_text(
        "import ctypes, sys, threading\n"
        f"threading.Thread(target=lambda: open({str(end)!r}).read()).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    child = process.start([sys.executable, str(program)], log=tmp_path / "log")
    stat = Path(f"/proc/{child.pid}/stat")
    assert eventually_true(lambda: ") Z " in stat.read_text(), SOON)
    assert process.alive(child)
    end.write_text("")
    assert eventually_true(lambda: not process.alive(child), SOON)
