"""Build the image of a peer that is written in Python: the Python of the fake driver's image, and wheels that a lock file pins by hash."""

from __future__ import annotations

import tempfile
from pathlib import Path

from testbed.images import python_base, wheels
from testbed.images.oci import Image
from testbed.images.program import program
from testbed.progress import Progress


def image(reference: str, module: str, requirements: Path, progress: Progress) -> Image:
    """Return an image that runs a module of the wheels in a lock file."""
    with tempfile.TemporaryDirectory() as scratch, progress.step(f"Python and wheels of {reference}") as step:
        packages = python_base.last_resolved() or python_base.resolve()
        root = Path(scratch) / "root"
        wheels.unpack_layer(python_base.layer(packages, step).file, root)
        files = wheels.download(requirements, packages.python, Path(scratch) / "wheels")
        wheels.unpack(files, root / wheels.DIST_PACKAGES)
        return program(reference, root, progress, entrypoint=("/usr/bin/python3", "-m", module))
