"""Build the driver image's middle layer: the wheels of ci/driver-requirements.txt, checked against the hashes in that file.

Used by driver.py. pip only downloads the wheels, for the Python of the image; this module unpacks them.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import shutil
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed import folders, process
from testbed.errors import TestbedError
from testbed.images import oci, tarball
from testbed.images.interpreter import Interpreter
from testbed.images.store import CacheEntry, Store, key_of
from testbed.progress import Step

RECIPE = 1  # increase it when the same wheels give another layer
DIST_PACKAGES = "usr/lib/python3/dist-packages"

_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_GLIBC = ("manylinux2014", "manylinux_2_17", "manylinux_2_28")
_NOT_NEEDED = (
    "*.pyi",
    "*.pyx",
    "*.pxd",
    "*.[ch]",
    "_yaml/*",
    "yaml/_yaml.*",
)  # PyYAML also works without its C extension, which has 3 MB


@dataclass(frozen=True)
class Wheels:
    """The wheels for a version of Python; `base` is the key of the base layer whose Python compiles them."""

    python: str
    base: str

    @property
    def key(self) -> str:
        """Return the cache key of the layer."""
        return key_of(["wheels", RECIPE, oci.architecture(), self.python, self.base, requirements().read_text()])


def requirements() -> Path:
    """Return the path of the lock file, which has exact versions and the hash of each wheel."""
    return folders.data("driver-requirements.txt")


def layer(wheels: Wheels, base: Path, step: Step) -> CacheEntry:
    """Return the layer from the cache, or build it. `base` is the layer with the Python that compiles the modules."""

    def build(file: Path, scratch: Path) -> dict[str, Any]:
        step.note(f"wheels for Python {wheels.python}")
        files = download(requirements(), wheels.python, scratch / "wheels")
        names = unpack(files, scratch / "new" / DIST_PACKAGES)
        compiled = _compile(base, scratch)
        made = oci.write_layer(tarball.tree(scratch / "new"), file)
        return {"digest": made.digest, "wheels": names, "compiled": compiled}

    return Store().get_or_build("wheels", wheels.key, step, build)


def unpack_layer(layer: Path, root: Path) -> None:
    """Unpack a layer into `root`, which may already have the content of lower layers."""
    root.mkdir(parents=True, exist_ok=True)
    process.run(["tar", "--extract", "--no-same-owner", "--file", layer, "--directory", root], timeout=300)


def download(requirements: Path, python: str, into: Path) -> list[Path]:
    """Download the wheels of a lock file for a version of Python, and return their paths."""
    machine = _MACHINES.get(oci.architecture(), oci.architecture())
    platforms = [word for libc in _GLIBC for word in ("--platform", f"{libc}_{machine}")]
    process.run(
        [
            *_pip(), "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--require-hashes",
            "--implementation", "cp", "--python-version", python, *platforms, "--dest", into, "--requirement", requirements,
        ],
        timeout=600,
        hint="check that pip can reach an index with these versions, or run: dra-testbed images build driver --with docker",
    )  # fmt: skip
    return sorted(into.glob("*.whl"))


def _pip() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
            return [found]
    raise TestbedError(
        "cannot download the wheels of the driver's image: pip was not found",
        hint="install python3-pip, or install pip into this environment",
    )


def unpack(wheels: list[Path], into: Path) -> list[str]:
    """Unpack wheels without what no program needs, and return their names."""
    into.mkdir(parents=True)
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as content:
            content.extractall(into, list(_needed(content)))
    return [wheel.name for wheel in wheels]


def _needed(wheel: zipfile.ZipFile) -> Iterator[str]:
    return (name for name in wheel.namelist() if not any(fnmatch.fnmatch(name, pattern) for pattern in _NOT_NEEDED))


def _compile(base: Path, scratch: Path) -> bool:
    """Compile the modules with the image's Python in a copy of the image's root, because byte code contains source paths."""
    root = scratch / "root"
    unpack_layer(base, root)
    (root / DIST_PACKAGES).parent.mkdir(parents=True, exist_ok=True)
    (scratch / "new" / DIST_PACKAGES).rename(root / DIST_PACKAGES)
    compiled = Interpreter(root).compile([DIST_PACKAGES])
    (root / DIST_PACKAGES).rename(scratch / "new" / DIST_PACKAGES)
    return compiled
