"""Prepare the folder of a peer: driver file, manifests, and an image archive that is built from a locked program."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ci.peers import modules, python_image
from testbed.binaries import ensure, peers
from testbed.folders import data
from testbed.images.oci import Image
from testbed.images.program import program
from testbed.progress import Progress

DRIVERS = data("manifests") / "drivers"
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Peer:
    """A driver of another project in one configuration. Its driver file is in a folder of manifests/drivers, and has the peer's name.

    Its image, image.tar, contains a program of ci/versions/peers.yaml, or a Python module of locked wheels. `files` are folders and files
    of the Go module of the program, and their places in the folder. `runtime` is the program that replaces the locked runc, and `nodes` the
    number of worker nodes, if two are too many.
    """

    folder: str
    image: str
    program: str = ""
    module: str = ""
    at: str = ""
    entrypoint: tuple[str, ...] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    runtime: str = ""
    nodes: int = 0


_DRANET = Peer(
    "dranet",
    "registry.k8s.io/networking/dranet:stable",
    program="dranet",
    at="/dranet",
    entrypoint=(),
    files={"install.yaml": "base/install.yaml"},
)
_CPU = Peer(
    "dra-driver-cpu",
    "registry.k8s.io/dra-driver-cpu/dra-driver-cpu:v0.2.0",
    program="dracpu",
    at="/dracpu",
    entrypoint=(),
    files={"deployment/helm/dra-driver-cpu": "chart", "manifests/base": "base"},
)
PEERS: Mapping[str, Peer] = {
    "dra-test-driver": Peer("dra-test-driver", "localhost/dra-test-driver:locked", program="dra-test-driver"),
    "dra-example-driver": Peer(
        "dra-example-driver", "localhost/dra-example-driver:locked", program="dra-example-kubeletplugin"
    ),
    "dranet": _DRANET,
    "dranet-persistent": _DRANET,
    "dra-driver-cpu-individual": _CPU,
    "dra-driver-cpu-grouped": _CPU,
    "kubernetes-pydra": Peer(
        "kubernetes-pydra",
        "localhost/kubernetes-pydra:locked",
        module="pydra.plugins.network.driver",
        runtime="runc-1.4",
        nodes=1,  # all nodes publish one pool, which is never complete with two
    ),
}


def version(peer: str) -> str:
    """Return the version of a peer in the lock file."""
    if PEERS[peer].program:
        return peers().program(PEERS[peer].program).version
    found = re.search(rf"^{peer}==(\S+)", wheels_of(peer).read_text(), re.MULTILINE)
    assert found  # noqa: S101 - our own file; a test reads it
    return found[1]


def wheels_of(peer: str) -> Path:
    """Return the lock file with the wheels of a peer that is written in Python."""
    return HERE / f"{peer}.txt"


def explanations(peer: str) -> Path:
    """Return the file that explains the failures of a peer."""
    return HERE / "explained" / f"{peer}.yaml"


def fingerprint(peer: str) -> str:
    """Return the version of a peer and a digest of its files."""
    home = DRIVERS / PEERS[peer].folder
    content = [f"{file.relative_to(home)}\0".encode() + file.read_bytes() for file in sorted(home.rglob("*.yaml"))]
    return f"{version(peer)}-{hashlib.sha256(b''.join(content)).hexdigest()[:12]}"


def prepare(peer: str, work: Path, progress: Progress) -> Path:
    """Create the folders of a peer below `work` and return its driver file. Build the program if the cache doesn't have it."""
    home, folder = work / peer, work / peer / PEERS[peer].folder
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(DRIVERS, home)
    image = _image_of_wheels(peer, progress) if PEERS[peer].module else _image_of_program(PEERS[peer], folder, progress)
    shutil.copyfile(image.archive, folder / "image.tar")
    return folder / f"{peer}.yaml"


def options(peer: str, progress: Progress) -> list[str]:
    """Return the options for `dra-testbed run` that a peer needs."""
    wanted = PEERS[peer]
    folder = [f"--binaries-from={_built(wanted.runtime, progress).parent}"] if wanted.runtime else []
    return folder + ([f"--nodes={wanted.nodes}"] if wanted.nodes else [])


def _image_of_program(peer: Peer, folder: Path, progress: Progress) -> Image:
    file = _built(peer.program, progress)
    modules.copy(peers().program(peer.program), {a: folder / b for a, b in peer.files.items()}, progress)
    return program(peer.image, file, progress, at=peer.at, entrypoint=peer.entrypoint)


def _image_of_wheels(peer: str, progress: Progress) -> Image:
    return python_image.image(PEERS[peer].image, PEERS[peer].module, wheels_of(peer), progress)


def _built(name: str, progress: Progress) -> Path:
    return ensure(peers(), [name], progress=progress, sources=["build"])[name]
