"""What root may do on this host. A sandbox may have taken capabilities from it; that is detected, never assumed."""

from __future__ import annotations

from pathlib import Path

CAP_SYS_RESOURCE = 24


def bounding_capabilities(status: Path = Path("/proc/self/status")) -> int:
    """All capabilities that a program started here could ever get, as the kernel's bit set."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return -1  # no such file, no such limit
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapBnd:")), -1)


def lacks_sys_resource() -> bool:
    """Whether even root may not lower the OOM score of a process, nor start a privileged container with plain runc."""
    return not bounding_capabilities() >> CAP_SYS_RESOURCE & 1
