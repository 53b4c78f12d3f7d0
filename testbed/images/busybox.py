"""Finds the static busybox that the sandbox and the workload image are made of. Called by basics.py."""

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
    """The one of the distribution's package, unpacked into `scratch`; else one of this host, if it is static."""
    try:
        return _find_in_package(debian.fetch_package("busybox-static", scratch / "busybox-static"))
    except TestbedError as reason:
        installed = shutil.which("busybox")
        if installed and is_static(Path(installed)):
            return Path(installed)
        host = f"{installed} is not a static program of this machine" if installed else "there is none on the PATH"
        raise TestbedError(
            f"no static busybox for the images\n  package busybox-static: {reason.what}\n  this host: {host}",
            hint="apt-get install busybox-static (or your distribution's static busybox)",
        ) from reason


def applets(busybox: Path) -> list[str]:
    """The programs that it can be, `busybox` itself left out."""
    said = process.run([busybox, "--list"], hint="is the busybox made for this machine?").stdout
    return sorted(set(said.split()) - {"busybox"})


def is_static(program: Path) -> bool:
    """Whether it is an ELF program of this machine that needs no loader, and so no library."""
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
    for place in ("bin/busybox", "usr/bin/busybox"):
        if (unpacked / place).is_file() and is_static(unpacked / place):
            return unpacked / place
    raise TestbedError("the package holds no static busybox")
