"""Read from the header of an ELF program whether it runs here without files of a distribution. Used by the modules that build images."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from testbed.images.oci import architecture

_MACHINES = {"amd64": 62, "arm64": 183}
_INTERPRETER = 3
_MAX_HEADER = 65536


@dataclass(frozen=True)
class Program:
    """An ELF program: whether it is for this architecture, and the path of the dynamic loader that it needs ('' if it is static)."""

    runs_here: bool
    loader: str


def read(file: Path) -> Program | None:
    """Return what the header of a file says, or None if it is not a complete 64-bit ELF header."""
    with file.open("rb") as content:
        header = content.read(_MAX_HEADER)
    if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01":
        return None
    (machine,) = struct.unpack_from("<H", header, 18)
    (table,) = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    if (size < 40 and count) or table + size * count > len(header):
        return None
    entries = [table + size * number for number in range(count)]
    loaders = [
        _text_at(header, entry) for entry in entries if struct.unpack_from("<I", header, entry)[0] == _INTERPRETER
    ]
    return Program(machine == _MACHINES.get(architecture()), loaders[0] if loaders else "")


def is_static(program: Path) -> bool:
    """Return True if the file is an ELF program for this architecture that needs no dynamic loader."""
    found = read(program)
    return found is not None and found.runs_here and not found.loader


def _text_at(header: bytes, entry: int) -> str:
    """Return the content of the segment that an entry of the program header table describes."""
    offset, length = struct.unpack_from("<Q", header, entry + 8)[0], struct.unpack_from("<Q", header, entry + 32)[0]
    return header[offset : offset + length].split(b"\0")[0].decode(errors="replace") or "of unknown name"
