"""Build an image that contains one static program, so that a driver in Go can be installed without Docker and without a registry.

Used by `python -m ci.peers`, which judges drivers of other projects. A driver file names the archive in `install.images`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from testbed.images import oci, tarball
from testbed.images.basics import PATH
from testbed.images.oci import ContainerSettings, Image
from testbed.images.store import Store, key_of
from testbed.progress import Progress

_FOLDER = "usr/bin"


def program(reference: str, file: Path, progress: Progress) -> Image:
    """Return an image with the program in /usr/bin as its entry point. It is rebuilt if the program or the reference changes."""
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    settings = ContainerSettings(entrypoint=(f"/{_FOLDER}/{file.name}",), env={"PATH": PATH})
    key = key_of([reference, oci.architecture(), settings.as_json(), digest])
    name = f"program-{file.name}"
    with progress.step(f"image {reference}") as step:
        entry = Store().get_or_build(name, key, step, _builder(reference, file, settings))
    return Image(name, reference, entry.file, entry.facts["digest"])


def _builder(reference: str, file: Path, settings: ContainerSettings) -> Callable[[Path, Path], dict[str, str]]:
    def build(archive: Path, scratch: Path) -> dict[str, str]:
        # Programs expect a /tmp for temporary files.
        members = [tarball.file(f"{_FOLDER}/{file.name}", file, 0o755), tarball.folder("tmp", 0o1777)]
        layer = oci.write_layer(members, scratch / "layer.tar")
        config = oci.configuration(settings, [layer], [f"the program {file.name}"])
        return {"digest": oci.write_archive(reference, config, [layer], archive)}

    return build
