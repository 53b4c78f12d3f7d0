"""Describes what is judged and what judges: versions and digests of the driver, its companions and dra-testbed. Used by `run_started`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from testbed import folders
from testbed.models.driver_file import DriverFile, load_driver_file

_SUFFIXES = {".py", ".yaml", ".proto", ".sh", ".json"}
Images = Mapping[str, Mapping[str, str]]


def describe(path: Path, images: Images) -> dict[str, object]:
    """Return what a report says about a driver. `images` are the images with their IDs, by the name of the driver."""
    driver_file = load_driver_file(path)
    process = driver_file.install and driver_file.install.process
    used = {} if process else dict(images.get(driver_file.driver, {}))
    return {
        "driver": driver_file.driver,
        "driver_file": driver_file.name,
        "digest": f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}",
        "version": _version(driver_file, used),
        "images": used,
    }


def _version(driver_file: DriverFile, images: Mapping[str, str]) -> str:
    """Return the version in the driver file, or else the program or the only image of the driver with its digest, or ''."""
    process = driver_file.install and driver_file.install.process
    if process and process.program and not driver_file.spec.version:
        return f"{process.program.name}@sha256:{hashlib.sha256(process.program.read_bytes()).hexdigest()}"
    if driver_file.spec.version or len(images) != 1:
        return driver_file.spec.version
    ((name, image_id),) = images.items()
    return image_id if "@" in image_id else f"{name}@{image_id}"


def harness_digest() -> str:
    """Return a digest of the code, the suites and the manifests of dra-testbed, the same in a wheel as in a checkout."""
    digest = hashlib.sha256()
    for name, path in _files():
        digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return f"sha256:{digest.hexdigest()}"


def _files() -> Iterator[tuple[str, Path]]:
    roots = {
        "testbed": folders.packages() / "testbed",
        "suites": folders.data("suites"),
        "manifests/suites": folders.data("manifests") / "suites",
    }
    for name, root in roots.items():
        for path in sorted(root.rglob("*")):
            inside = path.relative_to(root)
            if path.suffix in _SUFFIXES and not {"_data", "__pycache__"} & set(inside.parts) and path.is_file():
                yield f"{name}/{inside}", path
