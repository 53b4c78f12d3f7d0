"""Where things lie: the data that travels with the package, the cache, and the state of testbeds. Nobody else computes these paths."""

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
    """A folder (or file) of data, found the same way in a wheel and in a checkout."""
    package = Path(__file__).parent
    for candidate in (package / "_data" / name, package.parent / _IN_CHECKOUT[name]):
        if candidate.exists():
            return candidate
    raise TestbedError(f"the installation is damaged: {name} is not in {package}", hint="install dra-testbed again")


def packages() -> Path:
    """The folder that holds our two Python packages, testbed and fake_driver."""
    return Path(__file__).parent.parent


def cache() -> Path:
    """Where upstream programs and images are kept. DRA_TESTBED_CACHE moves it."""
    return _made(os.environ.get("DRA_TESTBED_CACHE") or platformdirs.user_cache_path("dra-testbed"))


def state() -> Path:
    """Where each testbed has its folder. DRA_TESTBED_STATE moves it."""
    return _made(os.environ.get("DRA_TESTBED_STATE") or platformdirs.user_state_path("dra-testbed"))


def _made(path: str | Path) -> Path:
    folder = Path(path).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as refused:
        whose = f" (it would be in a folder of {owner_of(folder)})" if isinstance(refused, PermissionError) else ""
        raise TestbedError(
            f"cannot make {folder}: {refused.strerror}{whose}", hint="set DRA_TESTBED_CACHE and DRA_TESTBED_STATE"
        ) from refused
    return folder


def owner_of(path: Path) -> str:
    """The name of the user whose it is; of what we may not even look at, the nearest folder above it counts."""
    for each in (path, *path.parents):
        with contextlib.suppress(OSError):
            uid = each.stat().st_uid
            break
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
