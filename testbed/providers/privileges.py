"""The capabilities of root on this host, which a sandbox may have limited. For the preflight of providers."""

from __future__ import annotations

from pathlib import Path

CAP_SYS_RESOURCE = 24


def bounding_capabilities(status: Path = Path("/proc/self/status")) -> int:
    """Return all capabilities that a program started here can have, as the kernel's bit set."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return -1  # without this file there is no limit
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapBnd:")), -1)


def lacks_sys_resource() -> bool:
    """Return True if even root may not lower a process's OOM score, and plain runc cannot start privileged containers."""
    return not bounding_capabilities() >> CAP_SYS_RESOURCE & 1
