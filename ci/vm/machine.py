"""Run a virtual machine with QEMU: command line, disks, start and end. Used by ci/vm/__main__.py.

The machine has no network. The first serial port is the console, written to a file; the second one is the output of the job. The disks are
the root file system (changes are discarded), the job and the results.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_INITS = {"systemd": "", "none": " init=/usr/local/sbin/least-init"}
INITS = tuple(_INITS)


class VmFailed(Exception):
    """The machine could not finish its job; the message says why."""


@dataclass(frozen=True)
class Machine:
    """The parts of a machine."""

    boot: Path  # a folder with root.img, vmlinuz and initrd.img
    job: Path
    result: Path
    console: Path
    init: str = "systemd"
    processors: int = 2
    mebibytes: int = 5120


class Deadline:
    """The end of a period that begins now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Return the seconds until then, at least 0."""
        return max(0.0, self._end - time.monotonic())


def accelerator(boot: Path) -> str:
    """Return `kvm` if a kernel that boots with KVM prints something, otherwise `tcg` (emulation)."""
    if os.access("/dev/kvm", os.R_OK | os.W_OK) and prints_anything(_trial(boot), 20):
        return "kvm"
    return "tcg"


def prints_anything(argv: Sequence[str], seconds: float) -> bool:
    """Return True if a program prints anything within this time; kill the program."""
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as qemu:
        assert qemu.stdout is not None  # noqa: S101 - stdout=PIPE one line above
        try:
            return bool(select.select([qemu.stdout], [], [], seconds)[0] and os.read(qemu.stdout.fileno(), 1))
        finally:
            qemu.kill()


def command(machine: Machine, accel: str) -> list[str]:
    """Return QEMU's command line. QEMU is killed when this process ends."""
    append = f"root=/dev/vda rw console=ttyS0 loglevel=5 panic=-1{_INITS[machine.init]}"
    disks = (f"{machine.boot}/root.img,snapshot=on", f"{machine.job},snapshot=on", str(machine.result))
    return [
        *_bare(machine.boot, accel, append), "-smp", str(machine.processors), "-m", str(machine.mebibytes),
        *(word for disk in disks for word in ("-drive", f"if=virtio,format=raw,cache=unsafe,file={disk}")),
        "-chardev", f"file,id=console,path={machine.console}", "-serial", "chardev:console",
        "-chardev", "stdio,id=job,signal=off", "-serial", "chardev:job",
    ]  # fmt: skip


def _trial(boot: Path) -> list[str]:
    """Return the command line of a machine without disks, whose kernel prints to stdout."""
    return [*_bare(boot, "kvm", "console=ttyS0 panic=-1"), "-m", "512", "-serial", "stdio"]


def _bare(boot: Path, accel: str, append: str) -> list[str]:
    return [
        "setpriv", "--pdeathsig", "KILL",
        "qemu-system-x86_64", "-machine", "q35", "-accel", {"tcg": "tcg,thread=multi"}.get(accel, accel), "-cpu", "max",
        "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-nic", "none",
        "-kernel", f"{boot}/vmlinuz", "-initrd", f"{boot}/initrd.img", "-append", append,
    ]  # fmt: skip


def run_until_off(argv: Sequence[str], deadline: Deadline, forward: Callable[[bytes], None]) -> None:
    """Start the machine, forward the output of its job, and return when it has switched itself off. Kill it at the deadline."""
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as qemu:
        assert qemu.stdout is not None  # noqa: S101 - stdout=PIPE one line above
        try:
            while select.select([qemu.stdout], [], [], deadline.left)[0]:
                piece = os.read(qemu.stdout.fileno(), 1 << 16)
                if not piece:
                    return _check_exit(qemu.wait(deadline.left))
                forward(piece)
        except subprocess.TimeoutExpired:
            pass
        finally:
            qemu.kill()
    raise VmFailed(f"the machine did not finish within {deadline.seconds / 60:g} minutes")


def _check_exit(code: int) -> None:
    if code:
        raise VmFailed(f"QEMU exited with {code}")


def make_disk(image: Path, size: str, content: Path | None = None) -> Path:
    """Create an ext4 image with the content of a folder, or an empty sparse one, and return it."""
    call(["truncate", "--size", size, image])
    if content is not None:
        call(["mke2fs", "-q", "-F", "-t", "ext4", "-d", content, image])
    return image


def call(argv: Sequence[str | Path], deadline: Deadline | None = None) -> None:
    """Run a program on this host. Raise VmFailed if it fails or the deadline passes."""
    words = [os.fspath(word) for word in argv]
    try:
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL, timeout=deadline.left if deadline else None)
    except FileNotFoundError as missing:
        raise VmFailed(f"{words[0]} is not installed: run `ci/install-host-packages vm` as root") from missing
    except subprocess.CalledProcessError as failed:
        raise VmFailed(f"{' '.join(words[:4])} … exited with {failed.returncode}") from failed
    except subprocess.TimeoutExpired as late:
        raise VmFailed(f"{' '.join(words[:4])} … did not finish before the deadline") from late
