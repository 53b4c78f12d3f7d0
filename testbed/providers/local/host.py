"""What this host can do and what it lacks. For the preflight of the local provider, and so for `doctor`; changes nothing."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from testbed.providers.base import HostProblem

_CAP_SYS_ADMIN, _CAP_NET_ADMIN, _CAP_SYS_RESOURCE = 21, 12, 24
_TOOLS = {
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
    "pivot_root": "util-linux",
    "ip": "iproute2",
}
_CGROUPS = Path("/sys/fs/cgroup")
_OVERLAY_MAGIC = 0x794C7630


@dataclass(frozen=True)
class Host:
    """What this host can do, as far as the local provider depends on it."""

    linux: bool
    root: bool
    capabilities: int
    cgroup_version: int
    cgroup_writable: bool
    overlay: bool
    kernel: tuple[int, int]
    missing_tools: tuple[str, ...]

    @property
    def volatile_overlays(self) -> bool:
        """True if the kernel knows the mount option `volatile`. Without it, each unmount of an overlay syncs the whole disk."""
        return self.kernel >= (5, 10)

    @property
    def may_lower_oom_score(self) -> bool:
        """True if runc may lower the OOM score of containers. In a sandbox, root may lack CAP_SYS_RESOURCE."""
        return bool(self.capabilities >> _CAP_SYS_RESOURCE & 1)

    def problems(self) -> list[HostProblem]:
        """Return what prevents the local provider from working here, with the cures."""
        if not self.linux:
            return [HostProblem("the local provider needs Linux", "use --provider kind")]
        found = []
        if not self.root:
            found.append(
                HostProblem(
                    "the local provider needs root: it creates namespaces and mounts",
                    "run it with sudo, or use --provider kind",
                )
            )
        elif not self._may(_CAP_SYS_ADMIN) or not self._may(_CAP_NET_ADMIN):
            found.append(
                HostProblem(
                    "root here lacks CAP_SYS_ADMIN or CAP_NET_ADMIN",
                    "run outside this container, or with --privileged",
                )
            )
        elif self.cgroup_version == 0:
            found.append(
                HostProblem(f"no cgroups are mounted at {_CGROUPS}", f"mount -t cgroup2 cgroup2 {_CGROUPS}"),
            )
        elif not self.cgroup_writable:
            found.append(
                HostProblem(
                    f"{_CGROUPS} cannot be written",
                    "run outside this container, or with --privileged --cgroupns=host",
                )
            )
        found += [HostProblem(f"{tool} is not installed", f"apt install {_TOOLS[tool]}") for tool in self.missing_tools]
        return found

    def remarks(self) -> list[HostProblem]:
        """Return what is missing here but not needed."""
        found = []
        if not self.overlay:
            found.append(
                HostProblem(
                    "no overlay file system: nodes get a reduced root file system with a read-only /usr",
                    "modprobe overlay",
                    fatal=False,
                )
            )
        if not self.may_lower_oom_score:
            found.append(
                HostProblem(
                    "root lacks CAP_SYS_RESOURCE: containers keep the OOM score of their parent",
                    "nothing to do",
                    fatal=False,
                )
            )
        if self.cgroup_version == 1:
            found.append(
                HostProblem(
                    "cgroup v1: kubelets are configured to accept it",
                    "nothing to do; newer hosts have cgroup v2",
                    fatal=False,
                )
            )
        return found

    def _may(self, capability: int) -> bool:
        return bool(self.capabilities >> capability & 1)


def detect() -> Host:
    """Return the facts about this host."""
    linux = sys.platform == "linux"
    return Host(
        linux=linux,
        root=os.geteuid() == 0,
        capabilities=_effective_capabilities() if linux else 0,
        cgroup_version=cgroup_version(_CGROUPS),
        cgroup_writable=os.access(_CGROUPS, os.W_OK) or os.access(_CGROUPS / "memory", os.W_OK),
        overlay=linux and has_overlay(os.uname().release),
        kernel=_kernel(),
        missing_tools=tuple(
            sorted(
                tool for tool in _TOOLS if not shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
            )
        ),
    )


def cgroup_version(root: Path) -> int:
    """Return the version of the cgroups that are mounted there, or 0 for none, as in a container without a service manager."""
    if (root / "cgroup.controllers").exists():
        return 2
    return 1 if any(root.glob("*/cgroup.procs")) else 0


def has_overlay(release: str, root: Path = Path("/")) -> bool:
    """Return True if overlays can be mounted: the kernel supports them, or can load the module, as on a fresh Debian."""
    if "overlay" in (root / "proc/filesystems").read_text().split():
        return True
    with contextlib.suppress(OSError):
        disabled = (root / "proc/sys/kernel/modules_disabled").read_text().strip() == "1"
        modules = (root / "lib/modules" / release / "modules.dep").read_text()
        return not disabled and "/overlay.ko" in modules
    return False


def on_overlay(path: Path) -> bool:
    """Return True if the path is on an overlay file system, which cannot hold the upper layer of another overlay."""
    buffer = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(path), buffer) != 0:
        return False
    return int.from_bytes(buffer.raw[:8], sys.byteorder) == _OVERLAY_MAGIC


def _kernel() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(takewhile(str.isdigit, minor)) or 0)


def _effective_capabilities() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0
