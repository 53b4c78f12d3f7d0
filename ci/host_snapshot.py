#!/usr/bin/env python3
"""Find what a testbed left on this host. Shares no code with the testbed. For ci/kill_and_sweep.py, tests/e2e and the virtual machine.

    ci/host_snapshot.py snapshot FILE     write what is on the host now
    ci/host_snapshot.py compare FILE      print what is new since then; exit with 1 if there is anything

It covers processes, mounts, namespaces, links, listeners, devices, kernel settings, cgroups, netfilter tables and the state folder.
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
    r"(kube-apiserver|kube-controller-manager|kube-scheduler|kube-proxy|kubelet|coredns|etcd|containerd|containerd-shim-runc-v2|runc|unshare|nsenter)"
)
STATE = Path(
    os.environ.get("DRA_TESTBED_STATE")
    or Path(os.environ.get("XDG_STATE_HOME", Path.home() / ".local/state")) / "dra-testbed"
)


def processes() -> set[str]:
    """Return the processes that run a program of a cluster; zombies don't count."""
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
    """Return the processes with the testbed's mark in their environment, and its proxies."""
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
    """Return the settings of the kernel that a kubelet changes, and the cgroup controllers that are on."""
    names = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")
    found = {f"{name}={(Path('/proc/sys') / name).read_text().strip()}" for name in names}
    controllers = Path("/sys/fs/cgroup/cgroup.subtree_control")
    return found | ({f"{controllers}={controllers.read_text().strip()}"} if controllers.exists() else set())


def devices() -> set[str]:
    """Return the entries of /dev, without those of its subfolders."""
    return {str(path) for path in Path("/dev").iterdir()}


def sockets() -> set[str]:
    """Return the IPv4 listeners of the processes above and those without a known process. Listeners of other programs come and go."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ours = {each.split()[0] for each in processes() | marked()}
    pids = _pids_of_sockets()
    found = {(row[1], pids.get(f"socket:[{row[9]}]", "")) for row in rows if row[3] == "0A"}
    return {f"{address} of process {pid or 'unknown'}" for address, pid in found if not pid or pid in ours}


def _pids_of_sockets() -> dict[str, str]:
    """Return a process that has the socket open, for each socket."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # the file was closed, or the process has ended
            found[str(file.readlink())] = file.parts[2]
    return found


def namespaces() -> set[str]:
    """Return the namespaces of all processes."""
    found = set()
    for entry in Path("/proc").iterdir():
        for kind in ("net", "mnt", "pid", "uts", "ipc"):
            try:
                found.add(str((entry / "ns" / kind).readlink()))
            except OSError:
                continue
    return found


def links() -> set[str]:
    """Return the network links and the named network namespaces."""
    named = Path("/run/netns")
    return {p.name for p in Path("/sys/class/net").iterdir()} | (
        {f"netns {p.name}" for p in named.iterdir()} if named.is_dir() else set()
    )


def mounts() -> set[str]:
    """Return the mount points."""
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


def cgroups() -> set[str]:
    """Return the cgroups that are named after dra-testbed."""
    return {str(path) for path in Path("/sys/fs/cgroup").rglob("dra-testbed*")}


def files() -> set[str]:
    """Return the entries of the state folder, without lock files and the logs that a failed `up` keeps."""
    return {p.name for p in STATE.iterdir() if not p.name.startswith(".")} if STATE.is_dir() else set()


def netfilter() -> set[str]:
    """Return the tables of nftables, if nft is installed."""
    nft = shutil.which("nft")
    return (
        set(subprocess.run([nft, "list", "tables"], capture_output=True, text=True, check=False).stdout.splitlines())
        if nft
        else set()
    )


KINDS = {
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


def take() -> dict[str, list[str]]:
    """Return what is on the host now, by kind."""
    return {kind: sorted(find()) for kind, find in KINDS.items()}


def new_since(before: dict[str, list[str]]) -> list[str]:
    """Return what is new since a snapshot. Processes get two seconds to end."""
    new: list[str] = []
    for _ in range(20):
        new = [f"{kind}: {each}" for kind, find in KINDS.items() for each in sorted(find() - set(before[kind]))]
        if not new:
            break
        time.sleep(0.1)
    return new


def main(verb: str, file: str) -> int:
    """Write a snapshot, or compare with one; return the exit code."""
    if verb == "snapshot":
        Path(file).write_text(json.dumps(take()))
        return 0
    if new := new_since(json.loads(Path(file).read_text())):
        print("left behind:", *new, sep="\n  ")
    return 1 if new else 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("snapshot", "compare"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
