"""A folder as a vendor would have it: driver file, manifests, and the driver's image as an archive, made of a locked program."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import yaml

from testbed.binaries import ensure, peers
from testbed.images.program import program
from testbed.progress import Progress

HERE = Path(__file__).parent
EXPLAINED = "differences.yaml"
PROGRAMS = {"dra-test-driver": "dra-test-driver", "dra-example-driver": "dra-example-kubeletplugin"}


def version(peer: str) -> str:
    """Which one is judged: the version in the lock file."""
    return peers().program(PROGRAMS[peer]).version


def edition(peer: str) -> str:
    """What is judged: the version, and a digest of all that its vendor has. What we say of it changes nothing in it."""
    theirs = [file for file in sorted((HERE / peer).glob("*.yaml")) if file.name != EXPLAINED]
    said = b"".join(file.name.encode() + b"\0" + file.read_bytes() for file in theirs)
    return f"{version(peer)}-{hashlib.sha256(said).hexdigest()[:12]}"


def prepare(peer: str, work: Path, progress: Progress) -> Path:
    """The driver file, in a new folder below `work`, with all that it names beside it. The program is built where the cache has none."""
    file = ensure(peers(), [PROGRAMS[peer]], progress=progress, sources=["build"])[PROGRAMS[peer]]
    folder = work / peer
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / peer, folder)
    said = yaml.safe_load((folder / "driver.yaml").read_text())
    image = program(said["spec"]["install"]["variables"]["image"], file, progress)
    shutil.copyfile(image.archive, folder / "image.tar")
    return folder / "driver.yaml"
