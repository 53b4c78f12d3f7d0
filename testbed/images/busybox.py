"""Find the static busybox of the sandbox image and the workload image. Used by basics.py."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

from testbed import process
from testbed.binaries import debian
from testbed.errors import TestbedError
from testbed.images.oci import architecture

_MACHINES = {"amd64": 62, "arm64": 183}
_INTERPRETER = 3


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


def is_static(program: Path) -> bool:
    """Return True if the file is an ELF program for this architecture that needs no dynamic loader."""
    with program.open("rb") as content:
        header = content.read(4096)
    if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01":
        return False
    (machine,) = struct.unpack_from("<H", header, 18)
    (table,) = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    if machine != _MACHINES.get(architecture()) or table + size * count > len(header):
        return False
    return all(struct.unpack_from("<I", header, table + size * n)[0] != _INTERPRETER for n in range(count))


def _find_in_package(unpacked: Path) -> Path:
    for path in ("bin/busybox", "usr/bin/busybox"):
        if (unpacked / path).is_file() and is_static(unpacked / path):
            return unpacked / path
    raise TestbedError("the package contains no static busybox")
