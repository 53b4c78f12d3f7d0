"""A machine of a local cluster: one process tree in its own namespaces. The cluster boots one for the control plane and one per node.

`unshare` starts the first process of the machine; all others enter through `nsenter`. When the first process dies, the kernel kills all
others in its PID namespace. Mounts, links and network namespaces disappear with the last of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed import process
from testbed.process import Completed, ProcessId
from testbed.providers.process_marks import MARK, mark_of
from testbed.waiting import Budget, NotYet, eventually

_BOOT = Budget("machine boot", 20, "a few mounts, which take seconds only on a very busy host")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Machine:
    """A running machine."""

    cluster: Path  # the folder of the cluster
    folder: Path  # the folder of the machine
    init: ProcessId  # its first process
    own_root: bool  # False if it uses the host's file system

    def enter(self, *, network_only: bool = False) -> list[str]:
        """Return the `nsenter` command in front of a command that is to run in the machine."""
        target = ["nsenter", "--target", str(self.init.pid), "--net"]
        if network_only:
            return [*target, "--"]
        return [*target, "--uts", "--pid", *(["--mount", "--ipc"] if self.own_root else []), "--"]

    def run(self, *argv: str, check: bool = True, timeout: float = 60) -> Completed:
        """Run a program in the machine and return its output."""
        return process.run([*self.enter(), *argv], check=check, timeout=timeout, env=_environment(self.cluster))

    def start(self, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> ProcessId:
        """Start a long-running program in the machine; return its process, not that of the nsenter in front of it."""
        entering = process.start([*self.enter(), *argv], log=log, env={**_environment(self.cluster), **(env or {})})
        name = Path(argv[0]).name
        return eventually(lambda: _only_child(entering, name, log), f"{name} to start", _BOOT, longest_pause=0.02)

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
