"""Build the image of a peer that is written in Python: the Python of the fake driver's image, and wheels that a lock file pins by hash."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from testbed.binaries import debian
from testbed.images import python_base, wheels
from testbed.images.oci import Image
from testbed.images.program import program
from testbed.images.python_base import Packages
from testbed.progress import Progress


def image(reference: str, module: str, requirements: Path, progress: Progress) -> Image:
    """Return an image that runs a module of the wheels in a lock file."""
    with tempfile.TemporaryDirectory() as scratch, progress.step(f"Python and wheels of {reference}") as step:
        packages = python_base.last_resolved() or python_base.resolve()
        root = Path(scratch) / "root"
        wheels.unpack_layer(python_base.layer(packages, step).file, root)
        _add_standard_library(packages, root)
        files = wheels.download(requirements, packages.python, Path(scratch) / "wheels")
        wheels.unpack(files, root / wheels.DIST_PACKAGES)
        return program(reference, root, progress, entrypoint=("/usr/bin/python3", "-m", module))


def _add_standard_library(packages: Packages, root: Path) -> None:
    """Put back what the fake driver's image leaves out of the standard library."""
    library = Path("usr/lib") / f"python{packages.python}"
    pins = [pin for pin in packages.pins if pin.startswith("libpython")]
    with tempfile.TemporaryDirectory() as scratch:
        debian.fetch_packages(pins, Path(scratch))
        shutil.rmtree(root / library)
        shutil.copytree(Path(scratch) / library, root / library, symlinks=True)
