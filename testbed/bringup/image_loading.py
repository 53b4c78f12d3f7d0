"""Loads an archive of images into the nodes of a testbed that is up. Used by `dra-testbed images`."""

from __future__ import annotations

from pathlib import Path

from testbed.bringup.testbeds import attach
from testbed.errors import UsageError
from testbed.images.archives import names_in
from testbed.progress import Progress
from testbed.providers.base import LoadsImages


def load_image(archive: Path, name: str, progress: Progress) -> tuple[str, ...]:
    """Load an archive into all nodes of a testbed, and return the names of its images.

    Raise UsageError if the file is no archive of images, or if the provider cannot reach the nodes of its clusters.
    """
    names = names_in(archive)
    testbed = attach(name)
    if not isinstance(testbed.cluster, LoadsImages):
        raise UsageError(
            f"images cannot be loaded into testbed {name}: its provider {testbed.config.provider} does not own the nodes",
            hint="push the image to a registry that the cluster can pull from, or import the archive on each node",
        )
    with progress.step(f"{archive.name} into the nodes of testbed {name}"):
        testbed.cluster.load_image(archive)
    return names
