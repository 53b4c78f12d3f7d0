"""A virtual machine under QEMU: its command line, its disks, and its life. Used by ci/vm/__main__.py.

It has no network. Its first serial port is its console, written to a file; the second one is what its job prints, passed on as it comes.
Its disks: root file system (changes are forgotten), job, result.
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
    """What kept the machine from doing its job, for humans."""


@dataclass(frozen=True)
class Machine:
    """What a machine is made of."""

    boot: Path  # a folder with root.img, vmlinuz and initrd.img
    job: Path
    result: Path
    console: Path
    init: str = "systemd"
    processors: int = 2
    mebibytes: int = 5120


class Deadline:
    """When all has to be over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds until then; never less than none."""
        return max(0.0, self._end - time.monotonic())


def accelerator(boot: Path) -> str:
    """How this host runs machines: with the processor's help, or emulated. Only a kernel that says something shows that KVM works."""
    if os.access("/dev/kvm", os.R_OK | os.W_OK) and says_something(_trial(boot), 20):
        return "kvm"
    return "tcg"


def says_something(argv: Sequence[str], seconds: float) -> bool:
    """Whether a program prints anything before it ends and before the time is over; it is ended then."""
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as qemu:
        assert qemu.stdout is not None  # noqa: S101 - it was asked for one line above
        try:
            return bool(select.select([qemu.stdout], [], [], seconds)[0] and os.read(qemu.stdout.fileno(), 1))
        finally:
            qemu.kill()


def command(machine: Machine, accel: str) -> list[str]:
    """QEMU's command line. It dies with us, even of SIGKILL."""
    append = f"root=/dev/vda rw console=ttyS0 loglevel=5 panic=-1{_INITS[machine.init]}"
    disks = (f"{machine.boot}/root.img,snapshot=on", f"{machine.job},snapshot=on", str(machine.result))
    return [
        *_bare(machine.boot, accel, append), "-smp", str(machine.processors), "-m", str(machine.mebibytes),
        *(word for disk in disks for word in ("-drive", f"if=virtio,format=raw,cache=unsafe,file={disk}")),
        "-chardev", f"file,id=console,path={machine.console}", "-serial", "chardev:console",
        "-chardev", "stdio,id=job,signal=off", "-serial", "chardev:job",
    ]  # fmt: skip


def _trial(boot: Path) -> list[str]:
    """A machine without disks, whose kernel greets us."""
    return [*_bare(boot, "kvm", "console=ttyS0 panic=-1"), "-m", "512", "-serial", "stdio"]


def _bare(boot: Path, accel: str, append: str) -> list[str]:
    return [
        "setpriv", "--pdeathsig", "KILL",
        "qemu-system-x86_64", "-machine", "q35", "-accel", {"tcg": "tcg,thread=multi"}.get(accel, accel), "-cpu", "max",
        "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-nic", "none",
        "-kernel", f"{boot}/vmlinuz", "-initrd", f"{boot}/initrd.img", "-append", append,
    ]  # fmt: skip


def live(argv: Sequence[str], deadline: Deadline, say: Callable[[bytes], None]) -> None:
    """Start the machine, pass on what its job prints, and return when it has switched itself off. It never outlives this call."""
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as qemu:
        assert qemu.stdout is not None  # noqa: S101 - it was asked for one line above
        try:
            while select.select([qemu.stdout], [], [], deadline.left)[0]:
                piece = os.read(qemu.stdout.fileno(), 1 << 16)
                if not piece:
                    return _ended(qemu.wait(deadline.left))
                say(piece)
        except subprocess.TimeoutExpired:
            pass
        finally:
            qemu.kill()
    raise VmFailed(f"not done within {deadline.seconds / 60:g} minutes")


def _ended(code: int) -> None:
    if code:
        raise VmFailed(f"QEMU ended with {code}")


def make_disk(image: Path, size: str, content: Path | None = None) -> Path:
    """An ext4 image that holds a folder's content, or an empty raw one; it takes no room but for what is written."""
    call(["truncate", "--size", size, image])
    if content is not None:
        call(["mke2fs", "-q", "-F", "-t", "ext4", "-d", content, image])
    return image


def call(argv: Sequence[str | Path], deadline: Deadline | None = None) -> None:
    """Run a program of this host to its end."""
    words = [os.fspath(word) for word in argv]
    try:
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL, timeout=deadline.left if deadline else None)
    except FileNotFoundError as missing:
        raise VmFailed(f"{words[0]} is not installed: run `ci/install-host-packages vm` as root") from missing
    except subprocess.CalledProcessError as failed:
        raise VmFailed(f"{' '.join(words[:4])} … ended with {failed.returncode}") from failed
    except subprocess.TimeoutExpired as late:
        raise VmFailed(f"{' '.join(words[:4])} … had no time to end") from late
