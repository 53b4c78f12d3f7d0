"""Build the wheel, install it alone in an empty environment, and see that it works like the checkout. Called by `tox -e wheel`.

Everything happens in a folder of its own among the temporary ones, where no checkout is near.
"""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import TestbedError
from testbed.process import run

CHECKOUT = Path(__file__).parents[1]
PACKAGES = {"testbed", "fake_driver"}
FOUND = """
import importlib.util
from pathlib import Path
from typing import get_args
from testbed import folders

for name in get_args(folders.Data):
    found = folders.data(name)
    assert found.exists() and Path(folders.__file__).parent in found.parents, found
for name in ("suites", "manifests", "tests", "ci"):
    assert importlib.util.find_spec(name) is None, f"{name} is importable"
"""
COMMANDS = (
    ["dra-testbed", "--version"],
    ["dra-testbed", "--help"],
    ["dra-testbed", "list"],
    ["dra-testbed", "binaries", "list"],
    ["dra-testbed", "images", "list"],
    ["dra-testbed", "status"],
    ["python", "-m", "testbed.models.schemas", "--check"],
    ["python", "-m", "pytest", "--version"],
)


def main(folder: Path) -> None:
    """Build, install, try."""
    (folder / "empty").mkdir()
    wheel = _built(folder)
    _check_names(wheel)
    programs = _installed(wheel, folder)
    for argv in (["python", "-c", FOUND], *COMMANDS):
        _try(programs, argv, folder)
    sys.stdout.write(f"{wheel.name} works alone\n")


def _built(folder: Path) -> Path:
    run([sys.executable, "-m", "build", "--wheel", "--outdir", folder, CHECKOUT], timeout=300)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _check_names(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = {name.split("/")[0] for name in content.namelist()}
    unexpected = {name for name in names if not name.endswith(".dist-info")} ^ PACKAGES
    if unexpected:
        raise TestbedError(f"{wheel.name} has other top-level names than {PACKAGES}: {unexpected}")


def _installed(wheel: Path, folder: Path) -> Path:
    run([sys.executable, "-m", "venv", folder / "venv"], timeout=120)
    programs = folder / "venv/bin"
    run([programs / "python", "-m", "pip", "install", "--quiet", wheel], timeout=600)
    return programs


def _try(programs: Path, argv: Sequence[str], folder: Path) -> None:
    clean = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "DRA_TESTBED_DEBUG"}}
    own = {"DRA_TESTBED_STATE": str(folder / "state"), "DRA_TESTBED_CACHE": str(folder / "cache")}
    run([programs / argv[0], *argv[1:]], cwd=folder / "empty", env=clean | own)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="dra-testbed-wheel-") as folder:
        main(Path(folder))
