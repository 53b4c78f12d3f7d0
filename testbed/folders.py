"""The paths of the packaged data, of the cache and of the state folder. No other module computes them."""

from __future__ import annotations

import contextlib
import os
import pwd
from pathlib import Path
from typing import Literal

import platformdirs

from testbed.errors import TestbedError

Data = Literal["suites", "manifests", "versions", "Dockerfile", "driver-requirements.txt"]
_IN_CHECKOUT: dict[Data, str] = {
    "suites": "suites", "manifests": "manifests", "versions": "ci/versions", "Dockerfile": "ci/Dockerfile",
    "driver-requirements.txt": "ci/driver-requirements.txt",
}  # fmt: skip


def data(name: Data) -> Path:
    """Return a folder (or file) of packaged data, in a wheel as in a checkout."""
    package = Path(__file__).parent
    for candidate in (package / "_data" / name, package.parent / _IN_CHECKOUT[name]):
        if candidate.exists():
            return candidate
    raise TestbedError(f"the installation is damaged: {name} is not in {package}", hint="install dra-testbed again")


def packages() -> Path:
    """Return the folder that contains the Python packages testbed and fake_driver."""
    return Path(__file__).parent.parent


def cache() -> Path:
    """Return the folder of upstream programs and images. DRA_TESTBED_CACHE overrides it."""
    return _refuse_writable(_made(os.environ.get("DRA_TESTBED_CACHE") or platformdirs.user_cache_path("dra-testbed")))


def state() -> Path:
    """Return the folder that contains the folders of all testbeds. DRA_TESTBED_STATE overrides it."""
    return _made(os.environ.get("DRA_TESTBED_STATE") or platformdirs.user_state_path("dra-testbed"))


def _made(path: str | Path) -> Path:
    folder = Path(path).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as refused:
        whose = f" (its parent folder belongs to {owner_of(folder)})" if isinstance(refused, PermissionError) else ""
        raise TestbedError(
            f"cannot create {folder}: {refused.strerror}{whose}",
            hint="set DRA_TESTBED_CACHE and DRA_TESTBED_STATE to folders that you can write",
        ) from refused
    return folder


def _refuse_writable(folder: Path) -> Path:
    """Return the folder. Raise TestbedError if another user can write it, because programs in it run as root."""
    found = folder.stat()
    owners = {0, os.geteuid(), int(os.environ.get("SUDO_UID") or 0)}
    if found.st_uid not in owners:
        raise TestbedError(
            f"the cache {folder} belongs to {owner_of(folder)}, who could replace the programs in it",
            hint="set DRA_TESTBED_CACHE to a folder of your own",
        )
    if found.st_mode & 0o022:
        raise TestbedError(
            f"other users can write the cache {folder} (mode {found.st_mode & 0o7777:o}), and replace the programs in it",
            hint=f"chmod go-w {folder}, or set DRA_TESTBED_CACHE to a folder of your own",
        )
    return folder


def shown(path: Path) -> str:
    """Return a path for a message: relative to the working folder, if it is in there."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def owner_of(path: Path) -> str:
    """Return the name of the path's owner; for an inaccessible path, of the nearest folder above it."""
    for each in (path, *path.parents):
        with contextlib.suppress(OSError):
            uid = each.stat().st_uid
            break
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
