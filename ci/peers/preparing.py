"""Prepare the folder of a peer: driver file, manifests, and an image archive that is built from a locked program."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ci.peers import modules
from testbed.binaries import ensure, peers
from testbed.folders import data
from testbed.images.program import program
from testbed.progress import Progress

DRIVERS = data("manifests") / "drivers"
EXPLAINED = Path(__file__).parent / "explained"


@dataclass(frozen=True)
class Peer:
    """A driver of another project in one configuration. Its driver file is in a folder of manifests/drivers, and has the peer's name.

    The image of its program is image.tar. `files` are folders and files of its Go module, and their places in the folder.
    """

    folder: str
    program: str
    image: str
    at: str = ""
    entrypoint: tuple[str, ...] | None = None
    files: Mapping[str, str] = field(default_factory=dict)


_DRANET = Peer(
    "dranet", "dranet", "registry.k8s.io/networking/dranet:stable", "/dranet", (), {"install.yaml": "base/install.yaml"}
)
_CPU_IMAGE = "registry.k8s.io/dra-driver-cpu/dra-driver-cpu:v0.2.0"
PEERS: Mapping[str, Peer] = {
    "dra-test-driver": Peer("dra-test-driver", "dra-test-driver", "localhost/dra-test-driver:locked"),
    "dra-example-driver": Peer(
        "dra-example-driver", "dra-example-kubeletplugin", "localhost/dra-example-driver:locked"
    ),
    "dranet": _DRANET,
    "dranet-persistent": _DRANET,
    "dra-driver-cpu-individual": Peer(
        "dra-driver-cpu", "dracpu", _CPU_IMAGE, "/dracpu", (), {"deployment/helm/dra-driver-cpu": "chart"}
    ),
    "dra-driver-cpu-grouped": Peer("dra-driver-cpu", "dracpu", _CPU_IMAGE, "/dracpu", (), {"manifests/base": "base"}),
}


def version(peer: str) -> str:
    """Return the version of a peer in the lock file."""
    return peers().program(PEERS[peer].program).version


def explanations(peer: str) -> Path:
    """Return the file that explains the failures of a peer."""
    return EXPLAINED / f"{peer}.yaml"


def fingerprint(peer: str) -> str:
    """Return the version of a peer and a digest of its files."""
    home = DRIVERS / PEERS[peer].folder
    content = [f"{file.relative_to(home)}\0".encode() + file.read_bytes() for file in sorted(home.rglob("*.yaml"))]
    return f"{version(peer)}-{hashlib.sha256(b''.join(content)).hexdigest()[:12]}"


def prepare(peer: str, work: Path, progress: Progress) -> Path:
    """Create the folder of a peer below `work` and return its driver file. Build the program if the cache doesn't have it."""
    wanted, lock = PEERS[peer], peers()
    file = ensure(lock, [wanted.program], progress=progress, sources=["build"])[wanted.program]
    folder = work / peer
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DRIVERS / wanted.folder, folder)
    files = {source: folder / target for source, target in wanted.files.items()}
    modules.copy(lock.program(wanted.program), files, progress)
    image = program(wanted.image, file, progress, at=wanted.at, entrypoint=wanted.entrypoint)
    shutil.copyfile(image.archive, folder / "image.tar")
    return folder / f"{peer}.yaml"
