"""One dockerd of our own: where its files lie, how it is started, who it is. For ci/docker-engine."""

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

from docker_traces import FORWARDING, Traces, ask

FOLDER = Path(
    os.environ.get("DRA_TESTBED_DOCKER_ENGINE")
    or Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "dra-testbed-docker-engine"
).absolute()
SOCKET, LOG, RECORD = FOLDER / "docker.sock", FOLDER / "dockerd.log", FOLDER / "engine.json"
RUNTIME = Path(__file__).resolve().parents[1] / "testbed/providers/kind/runtime.py"
LONGEST = 107 - len("/exec/containerd/containerd.sock.ttrpc")
# Process 1 of the namespaces: collects orphans, hands SIGTERM on, and hides another containerd of this host. It starts nothing before it
# is told to, so that no engine runs that is not written down.
INSIDE = """
read -r _ || exit 0
mkdir -p /run/containerd /run/docker
mount -t tmpfs tmpfs /run/containerd && mount -t tmpfs tmpfs /run/docker || exit 1
dockerd --config-file "$1" </dev/null &
trap 'kill -TERM $!' TERM
while kill -0 $! 2>/dev/null; do wait $!; done
"""


def say(text: str) -> None:
    """Tell a human; stdout belongs to the shell that evaluates it."""
    print(f"docker-engine: {text}", file=sys.stderr, flush=True)


def eventually(seconds: float, done: Callable[[], object]) -> bool:
    """Whether it came true in time."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty for a process that is none any more."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
    return fields if fields[0] not in "ZX" else []


def boot_id() -> str:
    """This host since it was started."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def processes_named(name: str) -> Iterator[int]:
    """All processes of that name that this host sees."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if comm.read_text() == f"{name}\n":
                yield int(comm.parent.name)


def process_named(name: str, parent: int | None = None) -> int | None:
    """A process of that name (of that parent, if one is given); None if there is none."""
    return next((pid for pid in processes_named(name) if parent is None or stat(pid)[1:2] == [str(parent)]), None)


def another_dockerd() -> int | None:
    """A dockerd whose bridges and rules are this host's, as ours were: one in a network namespace of its own has others."""
    network = Path("/proc/self/ns/net").readlink()
    for pid in processes_named("dockerd"):
        with contextlib.suppress(OSError):
            if stat(pid) and Path(f"/proc/{pid}/ns/net").readlink() == network:
                return pid
    return None


def misses_a_capability() -> bool:
    """Whether root has less than all capabilities here, which runc takes badly."""
    found = re.search(r"^CapBnd:\s*(\w+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    return not found or int(found[1], 16) != (1 << last + 1) - 1


@dataclass(frozen=True)
class Engine:
    """An engine that we started: its outermost process, whether it outlives every `with`, what the host was like before, and the boot."""

    pid: int
    started: str
    stays: bool
    before: Traces
    boot: str

    @property
    def of_this_boot(self) -> bool:
        """Whether what is written down is about the host as it is now: a reboot has removed all that the engine left on it."""
        return self.boot == boot_id()

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        return self.of_this_boot and stat(self.pid)[19:20] == [self.started]

    def save(self) -> None:
        """Write it down, all at once."""
        new = RECORD.with_suffix(".new")
        new.write_text(json.dumps(asdict(self)))
        new.replace(RECORD)

    @staticmethod
    def load() -> Engine | None:
        """What is written down."""
        try:
            told = json.loads(RECORD.read_text())
        except FileNotFoundError:
            return None
        if "boot" not in told:  # written before boots were noted: of this one, if the process lives
            told["boot"] = boot_id() if stat(told["pid"])[19:20] == [told["started"]] else ""
        return Engine(**{**told, "before": Traces(**told["before"])})


def configure() -> Path:
    """Write dockerd's configuration: all that is its own lies in our folder, and the wrapper stands in for runc only where it must."""
    settings: dict[str, Any] = {
        "data-root": str(FOLDER / "data"),
        "exec-root": str(FOLDER / "exec"),
        "pidfile": str(FOLDER / "dockerd.pid"),
        "hosts": [f"unix://{SOCKET}"],
        "group": str(os.getgid()),
        # systemd does not know the numbers that processes have in a namespace
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
    }
    if not ask("iptables", "-w", "-t", "nat", "-S")[0]:
        say("iptables does not work here: containers will not reach beyond this host")
        settings |= {"iptables": False, "ip-masq": False}
    if misses_a_capability():
        wrapper = FOLDER / "runtime"  # with this Python, which spares a search on PATH at every call
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -IS {shlex.quote(str(RUNTIME))} "$@"\n')
        wrapper.chmod(0o755)
        settings |= {"runtimes": {"dra-testbed": {"path": str(wrapper)}}, "default-runtime": "dra-testbed"}
    file = FOLDER / "daemon.json"
    file.write_text(json.dumps(settings, indent=2))
    return file


def launch(stays: bool) -> Engine:
    """Start dockerd, once what will have to be undone is written down."""
    config = configure()
    before = Traces.now()
    namespaces = ["unshare", "--mount", "--propagation=slave", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    with LOG.open("wb") as log:
        outer = subprocess.Popen(
            [*namespaces, "sh", "-c", INSIDE, "dra-testbed-docker-engine", str(config)],
            stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, cwd="/",
        )  # fmt: skip
    engine = Engine(outer.pid, stat(outer.pid)[19], stays, before, boot_id())
    engine.save()
    FORWARDING.write_text("1")  # dockerd would, and then drop what others forward
    if outer.stdin:
        outer.stdin.write(b"go\n")
        outer.stdin.close()
    return engine


def version() -> dict[str, Any] | None:
    """What our engine says of itself, asked without a client."""
    with contextlib.suppress(OSError, ValueError), socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(5)
        asked.connect(str(SOCKET))
        asked.sendall(b"GET /version HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: asked.recv(65536), b""))
        told: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
        return told
    return None


def wait_until_ready(engine: Engine) -> None:
    """Wait for the first answer; an engine that died or keeps silent is told of with its last words."""
    if not eventually(60, lambda: version() or not engine.alive) or not engine.alive:
        last = "\n".join(LOG.read_text(errors="replace").splitlines()[-15:])
        what = "gave no answer in 60 s" if engine.alive else "ended"
        sys.exit(f"docker-engine: dockerd {what}. The end of {LOG}:\n{last}")
