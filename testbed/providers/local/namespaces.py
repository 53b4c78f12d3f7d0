"""A machine of a local testbed: one process tree in namespaces of its own. Ends exactly, with all that it mounted and linked.

`unshare` starts the first process of the machine; everything else enters through `nsenter`. When the first process dies, the kernel
ends every other one in its PID namespace, and mounts, links and network namespaces go with the last of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed import process
from testbed.process import Completed, ProcessId
from testbed.providers.process_marks import MARK, mark_of
from testbed.waiting import Budget, NotYet, eventually

_BOOT = Budget("machine boot", 20, "a few mounts; seconds only on a host that is very busy")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Machine:
    """A running machine: its cluster's folder, its own, its first process, and whether it has a file system of its own."""

    cluster: Path
    folder: Path
    init: ProcessId
    own_root: bool

    def enter(self, *, network_only: bool = False) -> list[str]:
        """The words in front of a command that make it run inside."""
        target = ["nsenter", "--target", str(self.init.pid), "--net"]
        if network_only:
            return [*target, "--"]
        return [*target, "--uts", "--pid", *(["--mount", "--ipc"] if self.own_root else []), "--"]

    def run(self, *argv: str, check: bool = True, timeout: float = 60) -> Completed:
        """Run a program inside, to its end."""
        return process.run([*self.enter(), *argv], check=check, timeout=timeout, env=_environment(self.cluster))

    def start(self, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> ProcessId:
        """Start a program inside that stays; the answer is the program itself, not the nsenter in front of it."""
        entering = process.start([*self.enter(), *argv], log=log, env={**_environment(self.cluster), **(env or {})})
        name = Path(argv[0]).name
        return eventually(lambda: _only_child(entering, name, log), f"{name} to start", _BOOT, longest_pause=0.02)

    @property
    def alive(self) -> bool:
        """Whether its first process still runs."""
        return process.alive(self.init)


def boot(cluster: Path, folder: Path, script: Sequence[str], *, own_root: bool) -> Machine:
    """Start a machine: `script` runs as its first process, and says with the file `booted` that it is done setting up."""
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
            raise NotYet(f"it has not finished its mounts; its log ends: {last_line(log)}")
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
    """The program behind the nsenter or unshare that we started."""
    if not process.alive(parent):
        raise process.UnexpectedExit(f"{name} ended at once\n  its log ends: {last_line(log)}", hint=f"see {log}")
    try:
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    except OSError as gone:
        raise NotYet("it is just ending") from gone
    child = ProcessId.of(int(children[0])) if children else None
    if child is None or _program(child) in ("", "nsenter", "unshare"):
        raise NotYet(f"still entering; the log ends: {last_line(log)}")
    return child


def _program(running: ProcessId) -> str:
    """What a process runs right now; nothing when it ended meanwhile."""
    try:
        return Path(f"/proc/{running.pid}/exe").readlink().name
    except OSError:
        return ""


def last_line(log: Path) -> str:
    """The last line of a log, for an error."""
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1][-400:] if lines else "(empty)"
