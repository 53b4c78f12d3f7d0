"""A machine is entered only while its own first process runs, and never through a process that got its ID later."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed import process
from testbed.errors import CommandFailed, TestbedError
from testbed.process import ProcessId
from testbed.providers.local.namespaces import Machine
from testbed.providers.process_marks import MARK, mark_of
from testbed.waiting import Budget, eventually_true

_SOON = Budget("first process started", 10, "test")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Start a machine with a network namespace, or with that of this process where none can be made."""
    try:
        process.run(["unshare", "--net", "true"])
        isolation = ["unshare", "--net"]
    except CommandFailed:
        isolation = []
    env = {"PATH": os.defpath, MARK: mark_of(tmp_path)}
    init = process.start([*isolation, "sleep", "1000"], log=tmp_path / "log", env=env)
    program = Path(f"/proc/{init.pid}/exe")
    assert eventually_true(lambda: program.readlink().name not in ("unshare", "python3"), _SOON, longest_pause=0.02)
    yield Machine(tmp_path, tmp_path, init, own_root=False)
    process.kill(init)


def _namespace(pid: int | str) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may enter a namespace")
def test_a_program_is_run_in_the_network_of_the_machine(machine: Machine) -> None:
    with machine.entering(network_only=True) as enter:
        seen = process.run([*enter, "readlink", "/proc/self/ns/net"]).stdout.strip()
    assert seen == _namespace(machine.init.pid)


def _reused(machine: Machine) -> Machine:
    return replace(machine, init=ProcessId(machine.init.pid, machine.init.started - 1))


def _unmarked(machine: Machine) -> Machine:
    return replace(machine, cluster=machine.cluster / "another")


def _ended(machine: Machine) -> Machine:
    process.kill(machine.init)
    return machine


@pytest.mark.parametrize("change", [_reused, _unmarked, _ended])
def test_a_process_that_is_not_the_first_one_of_the_machine_is_not_entered(machine: Machine, change: object) -> None:
    assert callable(change)
    wrong: Machine = change(machine)
    with pytest.raises(TestbedError, match="does not run: its first process"):
        wrong.run("true")
    with pytest.raises(TestbedError, match="does not run"):
        wrong.checked_pid()
