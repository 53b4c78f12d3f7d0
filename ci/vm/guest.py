"""Build the machine's root file system, kernel and initrd from Debian packages, and cache them. Used by ci/vm/__main__.py.

The folder base-KEY appears in the cache when it is complete; the key is a digest of its sources.
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
    "etc/systemd/system/serial-getty@ttyS0.service": "/dev/null",  # no login prompt on the console
}
TEXTS = {
    "etc/hostname": "ordinary-debian\n",
    "etc/fstab": "/dev/vda / ext4 defaults 0 1\n/dev/vdb /job ext4 defaults 0 0\n",
}
_LEAN = ("doc", "man", "locale", "info")
_SIZE = "12G"


def key() -> str:
    """Return the digest of this module, with its packages and links, and of the files in `root`."""
    parts = [Path(__file__).read_bytes()]
    for file in sorted(path for path in FILES.rglob("*") if path.is_file()):
        parts += [str(file.relative_to(FILES)).encode(), file.read_bytes()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def base(cache: Path, deadline: Deadline) -> Path:
    """Return the folder with root.img, vmlinuz and initrd.img; build it if the cache doesn't have it."""
    place = cache / f"base-{key()}"
    if place.is_dir():
        return place
    if os.geteuid() != 0:
        raise VmFailed("building the machine's file system needs root: run this as root once")
    with locked(cache):
        if not place.is_dir():
            print(
                f"building {place} from {len(PACKAGES)} packages and their dependencies; this is done once", flush=True
            )
            _build(cache / ".part", deadline)
            (cache / ".part/made").rename(place)
            _remove_others(cache, but=place)
    return place


@contextlib.contextmanager
def locked(cache: Path) -> Iterator[None]:
    """Hold the lock of the cache, and remove the partial build of a killed process."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(cache / ".part", ignore_errors=True)
        try:
            yield
        finally:
            shutil.rmtree(cache / ".part", ignore_errors=True)


def add_files(root: Path) -> None:
    """Add our files, texts and links to the root file system."""
    shutil.copytree(FILES, root, dirs_exist_ok=True)
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    for name, target in LINKS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)
    (root / "job").mkdir()


def _build(scratch: Path, deadline: Deadline) -> None:
    root, made = scratch / "root", scratch / "made"
    scratch.mkdir()
    lean = [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in _LEAN]
    call(
        ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}", *lean, SUITE, root], deadline
    )
    add_files(root)
    made.mkdir()
    for kind in ("vmlinuz", "initrd.img"):
        (newest,) = (root / "boot").glob(f"{kind}-*")
        shutil.copy(newest, made / kind)
    make_disk(made / "root.img", _SIZE, root)


def _remove_others(cache: Path, *, but: Path) -> None:
    """Remove the folders of other keys."""
    for older in cache.glob("base-*"):
        if older != but:
            shutil.rmtree(older, ignore_errors=True)
