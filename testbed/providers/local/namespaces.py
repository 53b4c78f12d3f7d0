"""A machine of a local cluster: one process tree in its own namespaces. The cluster boots one for the control plane and one per node.

`unshare` starts the first process of the machine; all others enter through `nsenter`. When the first process dies, the kernel kills all
others in its PID namespace. Mounts, links and network namespaces disappear with the last of them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed import process
from testbed.errors import TestbedError
from testbed.process import Completed, ProcessId
from testbed.providers.process_marks import MARK, mark_of
from testbed.waiting import Budget, NotYet, eventually

_BOOT = Budget("machine boot", 20, "a few mounts, which take seconds only on a very busy host")
_FILES = {"mount": "mnt"}  # in /proc/PID/ns, where its name differs from nsenter's option
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Machine:
    """A running machine."""

    cluster: Path  # the folder of the cluster
    folder: Path  # the folder of the machine
    init: ProcessId  # its first process
    own_root: bool  # False if it uses the host's file system

    @contextlib.contextmanager
    def entering(self, *, network_only: bool = False) -> Iterator[list[str]]:
        """Yield the `nsenter` command in front of a command that is to run in the machine. The block must last until it has entered.

        The namespaces are opened before the first process is checked, so that a process that got its ID later is never entered.
        """
        kinds = ["net"] if network_only else ["net", "uts", "pid", *(["mount", "ipc"] if self.own_root else [])]
        with contextlib.ExitStack() as opened:
            options = []
            for kind in kinds:
                try:
                    handle = os.open(f"/proc/{self.init.pid}/ns/{_FILES.get(kind, kind)}", os.O_RDONLY | os.O_CLOEXEC)
                except OSError as gone:
                    raise self._stopped() from gone
                opened.callback(os.close, handle)
                options.append(f"--{kind}=/proc/{os.getpid()}/fd/{handle}")
            self.checked_pid()
            yield ["nsenter", *options, "--"]

    def checked_pid(self) -> int:
        """Return the ID of the first process. Raise an error if it has ended, also if another process has got its ID."""
        if not process.has_variable(self.init, MARK, mark_of(self.cluster)):
            raise self._stopped()
        return self.init.pid

    def run(self, *argv: str, check: bool = True, timeout: float = 60, stdin: int = process.NO_INPUT) -> Completed:
        """Run a program in the machine and return its output. `stdin` is a file descriptor."""
        with self.entering() as enter:
            own = _environment(self.cluster)
            return process.run([*enter, *argv], check=check, timeout=timeout, env=own, stdin=stdin)

    def start(self, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> ProcessId:
        """Start a long-running program in the machine; return its process, not that of the nsenter in front of it."""
        name = Path(argv[0]).name
        with self.entering() as enter:
            entering = process.start([*enter, *argv], log=log, env={**_environment(self.cluster), **(env or {})})
            return eventually(lambda: _only_child(entering, name, log), f"{name} to start", _BOOT, longest_pause=0.02)

    def _stopped(self) -> TestbedError:
        return TestbedError(
            f"{self.folder.name} of the cluster in {self.cluster} does not run: its first process, {self.init.pid}, has ended",
            hint="dra-testbed status; then dra-testbed down, and up again",
        )

    @property
    def alive(self) -> bool:
        """True if its first process still runs."""
        return process.alive(self.init)


def boot(cluster: Path, folder: Path, script: Sequence[str], *, own_root: bool) -> Machine:
    """Start a machine and wait until it has booted: `script` is its first process, and writes the file `booted`."""
    (folder / "booted").unlink(missing_ok=True)
    own = ["--mount", "--ipc"] if own_root else []
    log = folder / "boot.log"
    unshare = process.start(
        ["unshare", "--net", "--pid", "--uts", *own, "--fork", "--kill-child=KILL", "--", *script],
        log=log,
        env=_environment(cluster),
    )

    def ready() -> ProcessId:
        init = _only_child(unshare, folder.name, log)
        if not (folder / "booted").exists() or not (folder / "booted").stat().st_size:
            raise NotYet(f"its mounts are not complete; last line of its log: {last_line(log)}")
        return init

    return Machine(
        cluster,
        folder,
        eventually(ready, f"machine {folder.name} to boot", _BOOT, hint=f"see {log}", longest_pause=0.02),
        own_root,
    )


def _environment(cluster: Path) -> dict[str, str]:
    return {"PATH": _PATH, "LANG": "C.UTF-8", "HOME": "/root", MARK: mark_of(cluster)}


def _only_child(parent: ProcessId, name: str, log: Path) -> ProcessId:
    """Return the process of the program that the nsenter or unshare started."""
    if not process.alive(parent):
        raise process.UnexpectedExit(
            f"{name} exited right after its start\n  last line of its log: {last_line(log)}", hint=f"see {log}"
        )
    try:
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    except OSError as gone:
        raise NotYet("it is exiting") from gone
    child = ProcessId.of(int(children[0])) if children else None
    if child is None or _program(child) in ("", "nsenter", "unshare"):
        raise NotYet(f"still entering its namespaces; last line of its log: {last_line(log)}")
    return child


def _program(running: ProcessId) -> str:
    """Return the name of the program that a process executes; '' if it has exited."""
    try:
        return Path(f"/proc/{running.pid}/exe").readlink().name
    except OSError:
        return ""


def last_line(log: Path) -> str:
    """Return the last line of a log, for an error message."""
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1][-400:] if lines else "(empty)"
