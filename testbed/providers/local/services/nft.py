"""Finds nft, which kube-proxy calls: the program of this host, or that of the distribution's package, unpacked into the cache.

Nodes see the programs of this host; the unpacked one is mounted into them at its path on this host.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from testbed import folders
from testbed.binaries import debian
from testbed.errors import TestbedError
from testbed.progress import Progress

_PATH = os.pathsep.join(("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"))  # as in a node
_C_LIBRARY = ("libc6", "libgcc")
_WRAPPER = '#!/bin/sh\nLD_LIBRARY_PATH={folder}/lib exec {folder}/bin/nft "$@"\n'


def available() -> Path | None:
    """Return nft of this host, or the unpacked one; None if there is neither."""
    found, unpacked = shutil.which("nft", path=_PATH), _folder() / "nft"
    if found:
        return Path(found)
    return unpacked if unpacked.exists() else None


def is_unpacked(nft: Path) -> bool:
    """Return True if this is the unpacked nft, which nodes do not see."""
    return nft.parent == _folder()


def can_unpack() -> bool:
    """Return True if this is a Debian or Ubuntu, from which the package can be fetched."""
    return shutil.which("apt-get") is not None


def find(progress: Progress) -> Path | None:
    """Return nft. If there is none, unpack the package; return None and report why if that fails."""
    found = available()
    if found or not can_unpack():
        return found
    try:
        with progress.step("nft, from the distribution's package nftables"):
            return _unpack()
    except TestbedError as failed:
        progress.say(f"note: the package nftables could not be unpacked: {failed.what}")
        return None


def _unpack() -> Path:
    folder = _folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".nft-") as scratch:
        names = [each for each in debian.with_dependencies(["nftables"]) if _is_needed(each)]
        debian.fetch_packages(names, Path(scratch) / "packages")
        made = _collect(Path(scratch) / "packages", Path(scratch) / "nft")
        (made / "nft").write_text(_WRAPPER.format(folder=folder))
        (made / "nft").chmod(0o755)
        if not folder.exists():  # another process may have been quicker
            made.rename(folder)
    return folder / "nft"


def _is_needed(package: str) -> bool:
    """Return True for nft and its libraries. The C library is that of this host, which is the same distribution."""
    return package == "nftables" or (package.startswith("lib") and not package.startswith(_C_LIBRARY))


def _collect(packages: Path, into: Path) -> Path:
    """Copy nft and all libraries into the folders `bin` and `lib`."""
    (into / "bin").mkdir(parents=True)
    (into / "lib").mkdir()
    shutil.copy2(packages / "usr/sbin/nft", into / "bin")
    for library in packages.rglob("*.so*"):
        if library.parent.name.endswith("-gnu"):
            shutil.copy2(library, into / "lib", follow_symlinks=False)
    return into


def _folder() -> Path:
    return folders.cache() / "nft"
