"""Keeps the processes of a cgroup from opening disks: by the device cgroup (v1) or a BPF program (v2). Used by the local provider."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from pathlib import Path

_BPF = {"x86_64": 321, "aarch64": 280}  # the number of the system call
_LOAD_PROGRAM, _ATTACH_PROGRAM = 5, 8
_TYPE_OF_PROGRAM, _TYPE_OF_ATTACHMENT = 15, 6  # both for devices of a cgroup
_WITH_PROGRAMS_OF_CHILDREN = 2  # runc attaches a program of its own to each container
_BLOCK_DEVICE, _READ_OR_WRITE = 1, 6


def deny_disks(cgroup: Path) -> bool:
    """Deny reading and writing block devices to the processes in a cgroup. Return False if this hierarchy or kernel cannot do it.

    Creating block devices stays allowed, because runc allows it to every container.
    """
    denied = cgroup / "devices.deny"
    if denied.exists():
        denied.write_text("b *:* rw")
        return True
    return (cgroup / "cgroup.controllers").exists() and _attach(cgroup)


def _attach(cgroup: Path) -> bool:
    program, license_ = ctypes.create_string_buffer(_program()), ctypes.create_string_buffer(b"Apache-2.0")
    where = (ctypes.addressof(program), ctypes.addressof(license_))
    loaded = _bpf(_LOAD_PROGRAM, struct.pack("=IIQQIIQII", _TYPE_OF_PROGRAM, len(program) // 8, *where, 0, 0, 0, 0, 0))
    if loaded < 0:
        return False
    folder = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        options = (folder, loaded, _TYPE_OF_ATTACHMENT, _WITH_PROGRAMS_OF_CHILDREN)
        return _bpf(_ATTACH_PROGRAM, struct.pack("=IIII", *options)) == 0
    finally:
        os.close(folder)
        os.close(loaded)  # the cgroup keeps it


def _bpf(command: int, attributes: bytes) -> int:
    number = _BPF.get(platform.machine())
    if number is None:
        return -1
    return int(ctypes.CDLL(None).syscall(number, command, ctypes.create_string_buffer(attributes), len(attributes)))


def _program() -> bytes:
    """Return a program that answers 0 (denied) for reading or writing a block device, and 1 otherwise.

    The first number of its argument has the type of the device in the lower half, and the access in the upper one.
    """
    return b"".join(
        [
            _instruction(0x61, into=2, source=1),  # r2 = the first number
            _instruction(0xBF, into=3, source=2),  # r3 = r2
            _instruction(0x57, into=3, value=0xFFFF),  # r3 &= 0xffff
            _instruction(0x55, into=3, jump=5, value=_BLOCK_DEVICE),  # if r3 is another type: allow
            _instruction(0x77, into=2, value=16),  # r2 >>= 16
            _instruction(0x57, into=2, value=_READ_OR_WRITE),  # r2 &= …
            _instruction(0x15, into=2, jump=2),  # if r2 == 0: allow
            _instruction(0xB7, into=0, value=0),
            _instruction(0x95),  # return r0
            _instruction(0xB7, into=0, value=1),
            _instruction(0x95),
        ]
    )


def _instruction(code: int, *, into: int = 0, source: int = 0, jump: int = 0, value: int = 0) -> bytes:
    return struct.pack("=BBhi", code, source << 4 | into, jump, value)
