"""Build the driver's image with Docker and ci/Dockerfile, and convert it to the archive format of oci.py. Used by driver.py."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from testbed import folders, process
from testbed.errors import CommandFailed, TestbedError
from testbed.images import oci, wheels
from testbed.images.oci import Layer
from testbed.progress import Step

_COMPRESSED = {b"\x1f\x8b": "+gzip", b"\x28\xb5": "+zstd"}


def dockerfile() -> Path:
    """Return the path of the driver image's Dockerfile."""
    return folders.data("Dockerfile")


def is_available() -> bool:
    """Return True if a Docker engine answers; the `docker` command alone is not enough."""
    if shutil.which("docker") is None:
        return False
    try:
        return bool(
            process.run(
                ["docker", "version", "--format", "{{.Server.Version}}"], check=False, timeout=10
            ).stdout.strip()
        )
    except CommandFailed:
        return False


def build(reference: str, code: Path, archive: Path, scratch: Path, step: Step) -> dict[str, Any]:
    """Build the image, write it to `archive`, and remove it from the engine, which keeps only its build cache."""
    context = scratch / "context"
    shutil.copytree(code, context)
    (context / "ci").mkdir()
    shutil.copy(dockerfile(), context / "ci/Dockerfile")
    shutil.copy(wheels.requirements(), context / "ci/driver-requirements.txt")
    saved = scratch / "saved.tar"
    with process.stream(["docker", "build", "--tag", reference, "--file", context / "ci/Dockerfile", context]) as lines:
        for line in lines:
            step.note(f"docker: {line.strip()[:60]}")
    try:
        process.run(["docker", "save", "--output", saved, reference], timeout=300)
    finally:
        process.run(["docker", "image", "rm", "--no-prune", reference], check=False)
    return {"digest": rewrite(saved, reference, archive, scratch)}


def rewrite(saved: Path, reference: str, archive: Path, scratch: Path) -> str:
    """Convert the file of `docker save` (of any engine version) to an archive of oci.py; return the digest of its manifest."""
    with tarfile.open(saved) as tar:
        listed = json.loads(_read_member(tar, "manifest.json"))
        if len(listed) != 1:
            raise TestbedError(f"docker save wrote {len(listed)} images to {saved}, expected one")
        config = _read_member(tar, listed[0]["Config"])
        layers = list(_layers(tar, listed[0]["Layers"], scratch))
    return oci.write_archive(reference, config, layers, archive)


def _layers(tar: tarfile.TarFile, names: list[str], scratch: Path) -> Iterator[Layer]:
    for number, name in enumerate(names):
        file = scratch / f"layer-{number}"
        with _open_member(tar, name) as content, file.open("wb") as copy:
            shutil.copyfileobj(content, copy)
        with file.open("rb") as content:
            kind = _COMPRESSED.get(content.read(2), "")
        yield Layer.of(file, oci.PLAIN_LAYER + kind)


def _read_member(tar: tarfile.TarFile, name: str) -> bytes:
    with _open_member(tar, name) as content:
        return content.read()


def _open_member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    content = tar.extractfile(name)
    if content is None:
        raise TestbedError(f"docker save wrote an archive without the file {name}")
    return content


def key_parts() -> list[str]:
    """Return the inputs of the image's cache key, except for the driver's code."""
    return ["docker", oci.architecture(), *(_digest(file) for file in (dockerfile(), wheels.requirements()))]


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
