"""The smallest static program that an image is made of: an ELF header without segments."""

from __future__ import annotations

import struct

from testbed.images.oci import architecture

_MACHINES = {"amd64": 62, "arm64": 183}


def static_program() -> bytes:
    """Return the content of the program."""
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    return ident + struct.pack("<HHIQQQIHHHHHH", 2, _MACHINES[architecture()], 1, 0, 64, 0, 0, 64, 56, 0, 0, 0, 0)
