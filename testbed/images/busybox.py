"""Find the static busybox of the sandbox image and the workload image. Used by basics.py."""

from __future__ import annotations

import shutil
from pathlib import Path

from testbed import process
from testbed.binaries import debian
from testbed.errors import TestbedError
from testbed.images.elf import is_static


def static_busybox(scratch: Path) -> Path:
    """Return the busybox of the distribution's package, unpacked into `scratch`, or this host's busybox if it is static.

    Raises TestbedError if neither exists.
    """
    try:
        return _find_in_package(debian.fetch_package("busybox-static", scratch / "busybox-static"))
    except TestbedError as reason:
        installed = shutil.which("busybox")
        if installed and is_static(Path(installed)):
            return Path(installed)
        host = f"{installed} is not a static program for this architecture" if installed else "not found on PATH"
        raise TestbedError(
            f"cannot build images: no static busybox found\n  package busybox-static: {reason.what}\n  this host: {host}",
            hint="apt-get install busybox-static (or your distribution's static busybox)",
        ) from reason


def applets(busybox: Path) -> list[str]:
    """Return the names of the applets in this busybox, without `busybox` itself."""
    output = process.run([busybox, "--list"], hint="is this busybox built for this architecture?").stdout
    return sorted(set(output.split()) - {"busybox"})


def _find_in_package(unpacked: Path) -> Path:
    for path in ("bin/busybox", "usr/bin/busybox"):
        if (unpacked / path).is_file() and is_static(unpacked / path):
            return unpacked / path
    raise TestbedError("the package contains no static busybox")
