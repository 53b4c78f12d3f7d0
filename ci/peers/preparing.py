"""Prepare the folder of a peer: driver file, manifests, and an image archive that is built from a locked program."""

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
    """Return the version of a peer in the lock file."""
    return peers().program(PROGRAMS[peer]).version


def fingerprint(peer: str) -> str:
    """Return the version of a peer and a digest of its files, without our file of differences."""
    theirs = [file for file in sorted((HERE / peer).glob("*.yaml")) if file.name != EXPLAINED]
    content = b"".join(file.name.encode() + b"\0" + file.read_bytes() for file in theirs)
    return f"{version(peer)}-{hashlib.sha256(content).hexdigest()[:12]}"


def prepare(peer: str, work: Path, progress: Progress) -> Path:
    """Create the folder of a peer below `work` and return its driver file. Build the program if the cache doesn't have it."""
    file = ensure(peers(), [PROGRAMS[peer]], progress=progress, sources=["build"])[PROGRAMS[peer]]
    folder = work / peer
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / peer, folder)
    content = yaml.safe_load((folder / "driver.yaml").read_text())
    image = program(content["spec"]["install"]["variables"]["image"], file, progress)
    shutil.copyfile(image.archive, folder / "image.tar")
    return folder / "driver.yaml"
