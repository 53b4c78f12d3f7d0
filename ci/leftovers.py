#!/usr/bin/env python3
"""What is on this host that was not there before: an independent look, which shares no code with the testbed.

    ci/leftovers.py snapshot FILE     remember what is there now
    ci/leftovers.py compare FILE      print what has come since, exit 1 if there is anything

Looks at processes, mounts, namespaces, links, listeners, devices, kernel settings, cgroups, netfilter tables and the files below the state
folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = re.compile(
    r"(kube-apiserver|kube-controller-manager|kube-scheduler|kubelet|etcd|containerd|containerd-shim-runc-v2|runc|unshare|nsenter)"
)
STATE = Path(
    os.environ.get("DRA_TESTBED_STATE")
    or Path(os.environ.get("XDG_STATE_HOME", Path.home() / ".local/state")) / "dra-testbed"
)


def processes() -> set[str]:
    """Programs of a cluster, by what they are called; a zombie is no program any more."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            name = Path(words[0].decode(errors="replace")).name
            if PROGRAMS.fullmatch(name):
                found.add(f"{entry.name} {b' '.join(words[:4]).decode(errors='replace')[:120]}")
    return found


def marked() -> set[str]:
    """Processes of any kind that name the state folder or the testbed's proxy: in their environment, or in what they were called with."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                said = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"DRA_TESTBED_MARK=" in said or b"local/egress.py" in said:
                found.add(f"{entry.name} {said.split(bytes(1))[0].decode(errors='replace')}")
    return found


def settings() -> set[str]:
    """Settings of the whole machine that a kubelet would change, or that its cgroups need."""
    names = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")
    found = {f"{name}={(Path('/proc/sys') / name).read_text().strip()}" for name in names}
    controllers = Path("/sys/fs/cgroup/cgroup.subtree_control")
    return found | ({f"{controllers}={controllers.read_text().strip()}"} if controllers.exists() else set())


def devices() -> set[str]:
    """What lies in /dev, terminals and shared memory apart."""
    return {str(path) for path in Path("/dev").iterdir()}


def sockets() -> set[str]:
    """IPv4 addresses on which one of the programs above listens, or nobody that can be found. Other people's listeners come and go."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ours = {each.split()[0] for each in processes() | marked()}
    owners = _owners()
    found = {(row[1], owners.get(f"socket:[{row[9]}]", "")) for row in rows if row[3] == "0A"}
    return {f"{address} of {pid or 'nobody'}" for address, pid in found if not pid or pid in ours}


def _owners() -> dict[str, str]:
    """Who has which socket open, by the socket's name."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # it has been closed, or its process has ended
            found[str(file.readlink())] = file.parts[2]
    return found


def namespaces() -> set[str]:
    """Every namespace that some process is in."""
    found = set()
    for entry in Path("/proc").iterdir():
        for kind in ("net", "mnt", "pid", "uts", "ipc"):
            try:
                found.add(str((entry / "ns" / kind).readlink()))
            except OSError:
                continue
    return found


def links() -> set[str]:
    """Network links of this host, and named network namespaces."""
    named = Path("/run/netns")
    return {p.name for p in Path("/sys/class/net").iterdir()} | (
        {f"netns {p.name}" for p in named.iterdir()} if named.is_dir() else set()
    )


def mounts() -> set[str]:
    """Mount points of this host."""
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


def cgroups() -> set[str]:
    """Every cgroup whose path has our name in it."""
    return {str(path) for path in Path("/sys/fs/cgroup").rglob("dra-testbed*")}


def files() -> set[str]:
    """Everything in the state folder but the lock files and what was kept of a failed `up` on purpose."""
    return {p.name for p in STATE.iterdir() if not p.name.startswith(".")} if STATE.is_dir() else set()


def netfilter() -> set[str]:
    """Tables of nftables, where the program is there to list them."""
    nft = shutil.which("nft")
    return (
        set(subprocess.run([nft, "list", "tables"], capture_output=True, text=True, check=False).stdout.splitlines())
        if nft
        else set()
    )


LOOKS = {
    "marked process": marked,
    "setting": settings,
    "device": devices,
    "listener": sockets,
    "process": processes,
    "namespace": namespaces,
    "link": links,
    "mount": mounts,
    "cgroup": cgroups,
    "file": files,
    "netfilter": netfilter,
}


def main(verb: str, file: str) -> int:
    """Remember, or compare; a process that is just ending gets two seconds."""
    if verb == "snapshot":
        Path(file).write_text(json.dumps({kind: sorted(look()) for kind, look in LOOKS.items()}))
        return 0
    before = json.loads(Path(file).read_text())
    new: list[str] = []
    for _ in range(20):
        new = [f"{kind}: {thing}" for kind, look in LOOKS.items() for thing in sorted(look() - set(before[kind]))]
        if not new:
            return 0
        time.sleep(0.1)
    print("left behind:", *new, sep="\n  ")
    return 1


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("snapshot", "compare"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
