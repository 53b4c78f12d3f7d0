"""What dockerd changes on its host, and how that is reverted: bridges, netfilter rules, cgroups, ip_forward. For ci/docker/engine.

dockerd itself reverts none of that. What was there before dockerd started stays, and so does what other programs have added since.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
CGROUPS = Path("/sys/fs/cgroup")
RUN = (Path("/run/containerd"), Path("/run/docker"))


@dataclass(frozen=True)
class HostState:
    """The objects on a host, at one moment, of the kinds that dockerd creates."""

    forwarding: str
    bridges: list[str]
    cgroups: list[str]
    filters: list[str]
    folders: list[str]

    @classmethod
    def now(cls) -> HostState:
        """Return the current state of the host."""
        folders = [str(folder) for folder in RUN if folder.exists()]
        return cls(FORWARDING.read_text().strip(), bridges(), cgroups(), filters(), folders)

    def restore(self) -> None:
        """Remove what dockerd has created since."""
        created = [name for name in bridges() if name not in self.bridges]
        remove_filters([rule for rule in filters() if rule not in self.filters and is_dockers(rule, set(created))])
        for name in created:
            ask("ip", "link", "delete", name)
        FORWARDING.write_text(self.forwarding)
        for name in cgroups():
            if name not in self.cgroups:
                remove_empty(Path(name))
        for folder in RUN:
            if str(folder) not in self.folders:
                remove_empty(folder)


def ask(*argv: str, env: dict[str, str] | None = None, seconds: float | None = None) -> tuple[bool, str]:
    """Run a program; return whether it exited with 0, and its output. A missing program counts as a failed one."""
    try:
        done = subprocess.run(
            argv, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired) as refused:
        return False, str(refused)
    return not done.returncode, done.stderr + done.stdout if done.returncode else done.stdout


def bridges() -> list[str]:
    """Return the links whose names dockerd gives to its bridges."""
    names = (link.name for link in Path("/sys/class/net").iterdir())
    return sorted(name for name in names if re.fullmatch(r"docker0|br-[0-9a-f]{12}", name))


def cgroups() -> list[str]:
    """Return the cgroups that dockerd creates for its containers: one, or one per controller on cgroup v1."""
    return sorted(str(path) for path in (CGROUPS / "docker", *CGROUPS.glob("*/docker")) if path.is_dir())


def filters() -> list[str]:
    """Return all netfilter chains and rules as arguments of `iptables` that create them; none if iptables does not work."""
    rules, table = [], ""
    worked, saved = ask("iptables-save")
    for line in saved.splitlines() if worked else ():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith(":"):
            rules.append(f"-t {table} -N {line[1:].split()[0]}")
        elif line.startswith("-A"):
            rules.append(f"-t {table} {line}")
    return rules


def is_dockers(rule: str, links: set[str]) -> bool:
    """Return True if dockerd created a rule: it names one of these links or Docker's chains, or is for a published port."""
    return bool(
        links.intersection(rule.split())
        or re.search(r"-[NAj] DOCKER\b", rule)
        or re.search(r"-A POSTROUTING -s (\S+)/32 -d \1/32 .*-j MASQUERADE", rule)
    )


def remove_filters(rules: list[str]) -> None:
    """Remove the rules first, and then the chains that they jump to."""
    for rule in sorted(rules, key=lambda rule: " -N " in rule):
        ask("iptables", "-w", *shlex.split(rule.replace(" -A ", " -D ", 1).replace(" -N ", " -X ", 1)))


def remove_empty(folder: Path) -> None:
    """Remove the empty folders of a tree; cgroups are trees of empty folders."""
    for each, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            Path(each).rmdir()
