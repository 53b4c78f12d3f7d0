"""The machine's root file system, kernel and initrd: an ordinary Debian, made of its packages once and then kept in the cache.

Used by ci/vm/__main__.py. ROOT/base-KEY is there whole or not at all; the key is what it is made of.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ci.vm.machine import Deadline, VmFailed, call, make_disk

SUITE = "bookworm"
PACKAGES = (
    "linux-image-amd64", "initramfs-tools", "systemd", "systemd-sysv", "udev", "dbus", "kmod", "procps", "ca-certificates",
    "python3", "python3-venv", "iproute2", "util-linux", "mount", "nftables", "libseccomp2",
)  # fmt: skip
FILES = Path(__file__).with_name("root")
LINKS = {
    "etc/systemd/system/multi-user.target.wants/dra-testbed-job.service": "/etc/systemd/system/dra-testbed-job.service",
    "etc/systemd/system/serial-getty@ttyS0.service": "/dev/null",  # a login prompt would take the console away
}
TEXTS = {
    "etc/hostname": "ordinary-debian\n",
    "etc/fstab": "/dev/vda / ext4 defaults 0 1\n/dev/vdb /job ext4 defaults 0 0\n",
}
_LEAN = ("doc", "man", "locale", "info")
_SIZE = "12G"


def key() -> str:
    """The name of what is made of these packages, files and links by this module."""
    parts = [Path(__file__).read_bytes()]
    for file in sorted(path for path in FILES.rglob("*") if path.is_file()):
        parts += [str(file.relative_to(FILES)).encode(), file.read_bytes()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def base(cache: Path, deadline: Deadline) -> Path:
    """The folder with root.img, vmlinuz and initrd.img, from the cache or made now."""
    place = cache / f"base-{key()}"
    if place.is_dir():
        return place
    if os.geteuid() != 0:
        raise VmFailed("the machine's file system is made by root, once: run this as root")
    with alone(cache):
        if not place.is_dir():
            print(f"making {place} of {len(PACKAGES)} packages and what they need; this is done once", flush=True)
            _make(cache / ".part", deadline)
            (cache / ".part/made").rename(place)
            _forget(cache, but=place)
    return place


@contextlib.contextmanager
def alone(cache: Path) -> Iterator[None]:
    """Nobody else makes one meanwhile, and what somebody who was killed had begun is gone."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(cache / ".part", ignore_errors=True)
        try:
            yield
        finally:
            shutil.rmtree(cache / ".part", ignore_errors=True)


def furnish(root: Path) -> None:
    """Put in what this machine is for, and where it starts."""
    shutil.copytree(FILES, root, dirs_exist_ok=True)
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    for name, target in LINKS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)
    (root / "job").mkdir()


def _make(scratch: Path, deadline: Deadline) -> None:
    root, made = scratch / "root", scratch / "made"
    scratch.mkdir()
    lean = [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in _LEAN]
    call(
        ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}", *lean, SUITE, root], deadline
    )
    furnish(root)
    made.mkdir()
    for kind in ("vmlinuz", "initrd.img"):
        (newest,) = (root / "boot").glob(f"{kind}-*")
        shutil.copy(newest, made / kind)
    make_disk(made / "root.img", _SIZE, root)


def _forget(cache: Path, *, but: Path) -> None:
    """Remove what other recipes made."""
    for older in cache.glob("base-*"):
        if older != but:
            shutil.rmtree(older, ignore_errors=True)
