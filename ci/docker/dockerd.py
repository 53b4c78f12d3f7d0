"""The dockerd of ci/docker/engine: its files, its start, and the record by which later calls recognise it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from host_state import FORWARDING, HostState, ask

FOLDER = Path(
    os.environ.get("DRA_TESTBED_DOCKER_ENGINE")
    or Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "dra-testbed-docker-engine"
).absolute()
SOCKET, LOG, RECORD = FOLDER / "docker.sock", FOLDER / "dockerd.log", FOLDER / "engine.json"
RUNTIME = Path(__file__).resolve().parents[2] / "testbed/providers/kind/runtime.py"
LONGEST = 107 - len("/exec/containerd/containerd.sock.ttrpc")
# Process 1 of the namespaces. It reaps orphans, forwards SIGTERM and hides the host's own containerd. It waits for a line on stdin, so that
# dockerd never runs before the record is written.
INSIDE = """
read -r _ || exit 0
mkdir -p /run/containerd /run/docker
mount -t tmpfs tmpfs /run/containerd && mount -t tmpfs tmpfs /run/docker || exit 1
dockerd --config-file "$1" </dev/null &
trap 'kill -TERM $!' TERM
while kill -0 $! 2>/dev/null; do wait $!; done
"""


def say(text: str) -> None:
    """Print a message to stderr; a shell evaluates stdout."""
    print(f"docker-engine: {text}", file=sys.stderr, flush=True)


def eventually(seconds: float, done: Callable[[], object]) -> bool:
    """Wait until the condition holds; return False if it doesn't within that time."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; none if the process has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
    return fields if fields[0] not in "ZX" else []


def boot_id() -> str:
    """Return the ID of this boot of the host."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def processes_named(name: str) -> Iterator[int]:
    """Yield all processes with this name on the host."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if comm.read_text() == f"{name}\n":
                yield int(comm.parent.name)


def process_named(name: str, parent: int | None = None) -> int | None:
    """Return a process with this name (and this parent, if given), or None."""
    return next((pid for pid in processes_named(name) if parent is None or stat(pid)[1:2] == [str(parent)]), None)


def another_dockerd() -> int | None:
    """Return a dockerd in the host's network namespace, where our bridges and rules were; None if there is none."""
    network = Path("/proc/self/ns/net").readlink()
    for pid in processes_named("dockerd"):
        with contextlib.suppress(OSError):
            if stat(pid) and Path(f"/proc/{pid}/ns/net").readlink() == network:
                return pid
    return None


def misses_a_capability() -> bool:
    """Return True if root lacks a capability here; runc then refuses privileged containers."""
    found = re.search(r"^CapBnd:\s*(\w+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    return not found or int(found[1], 16) != (1 << last + 1) - 1


@dataclass(frozen=True)
class Engine:
    """An engine that we started. `pid` is its outermost process; `stays` is True if `start` started it, so that no `with` stops it."""

    pid: int
    started: str
    stays: bool
    before: HostState
    boot: str

    @property
    def of_this_boot(self) -> bool:
        """Return False after a reboot, which reverts all changes of the engine."""
        return self.boot == boot_id()

    @property
    def alive(self) -> bool:
        """Return True if the engine's process still runs."""
        return self.of_this_boot and stat(self.pid)[19:20] == [self.started]

    def save(self) -> None:
        """Write the record atomically."""
        new = RECORD.with_suffix(".new")
        new.write_text(json.dumps(asdict(self)))
        new.replace(RECORD)

    @staticmethod
    def load() -> Engine | None:
        """Return the recorded engine, or None."""
        try:
            record = json.loads(RECORD.read_text())
        except FileNotFoundError:
            return None
        return Engine(**{**record, "before": HostState(**record["before"])})


def configure() -> Path:
    """Write dockerd's configuration and return its path. All files are in our folder; the wrapper replaces runc only where needed."""
    settings: dict[str, Any] = {
        "data-root": str(FOLDER / "data"),
        "exec-root": str(FOLDER / "exec"),
        "pidfile": str(FOLDER / "dockerd.pid"),
        "hosts": [f"unix://{SOCKET}"],
        "group": str(os.getgid()),
        # systemd doesn't know the PIDs inside of a PID namespace
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
    }
    if not ask("iptables", "-w", "-t", "nat", "-S")[0]:
        say("iptables does not work here: containers can reach this host only")
        settings |= {"iptables": False, "ip-masq": False}
    if misses_a_capability():
        wrapper = FOLDER / "runtime"  # with this Python, which saves a search on PATH at every call
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -IS {shlex.quote(str(RUNTIME))} "$@"\n')
        wrapper.chmod(0o755)
        settings |= {"runtimes": {"dra-testbed": {"path": str(wrapper)}}, "default-runtime": "dra-testbed"}
    file = FOLDER / "daemon.json"
    file.write_text(json.dumps(settings, indent=2))
    return file


def launch(stays: bool) -> Engine:
    """Record the state of the host, start dockerd, and return the engine."""
    config = configure()
    before = HostState.now()
    namespaces = ["unshare", "--mount", "--propagation=slave", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    with LOG.open("wb") as log:
        outer = subprocess.Popen(
            [*namespaces, "sh", "-c", INSIDE, "dra-testbed-docker-engine", str(config)],
            stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, cwd="/",
        )  # fmt: skip
    engine = Engine(outer.pid, stat(outer.pid)[19], stays, before, boot_id())
    engine.save()
    FORWARDING.write_text("1")  # otherwise dockerd sets it and also makes DROP the policy of the FORWARD chain
    if outer.stdin:
        outer.stdin.write(b"go\n")
        outer.stdin.close()
    return engine


def version() -> dict[str, Any] | None:
    """Return the engine's answer to GET /version, which needs no client; None if it doesn't answer."""
    with contextlib.suppress(OSError, ValueError), socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(5)
        asked.connect(str(SOCKET))
        asked.sendall(b"GET /version HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: asked.recv(65536), b""))
        shown: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
        return shown
    return None


def wait_until_ready(engine: Engine) -> None:
    """Wait for the first answer; exit with the end of dockerd's log if it ended or doesn't answer."""
    if not eventually(60, lambda: version() or not engine.alive) or not engine.alive:
        last = "\n".join(LOG.read_text(errors="replace").splitlines()[-15:])
        what = "did not answer within 60 s" if engine.alive else "ended"
        sys.exit(f"docker-engine: dockerd {what}. The end of {LOG}:\n{last}")
