"""The images that kubeadm wants on a node, each made of a locked program. For assemble.py.

They carry the names that kubeadm asks for, with the versions in them, and hold what is locked: where an etcd of another patch is
locked than this kubeadm would take, its image has ours under the name of the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed import process
from testbed.errors import TestbedError
from testbed.images import docker, oci, tarball
from testbed.images.node import proxy
from testbed.images.oci import ContainerSettings, Image
from testbed.images.tarball import Member

_PATH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
_PLAIN = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


@dataclass(frozen=True)
class BuildInputs:
    """What the images are made of: programs by name, an unpacked Debian, the image of a pod's sandbox."""

    programs: Mapping[str, Path]
    root: Path
    sandbox: Image


def required(kubeadm: Path, version: str) -> list[str]:
    """The names that kubeadm of this version pulls."""
    listing: list[str | Path] = [kubeadm, "config", "images", "list", "--kubernetes-version", f"v{version}"]
    return process.run(
        listing, hint="is the cached kubeadm damaged? dra-testbed binaries fetch --verify"
    ).stdout.split()


def component(name: str) -> str:
    """`coredns` of `registry/coredns/coredns:v1`."""
    return name.rpartition("/")[2].partition(":")[0]


def buildable(names: Sequence[str], inputs: BuildInputs) -> list[str]:
    """Those that can be made. Without a DNS server a cluster works, save for the names of Services; without another part it does not."""
    return [name for name in names if component(name) != "coredns" or "coredns" in inputs.programs]


def write(name: str, inputs: BuildInputs, archive: Path, scratch: Path) -> None:
    """The image of that name, as an archive."""
    if component(name) == "pause":
        docker.rewrite(inputs.sandbox.archive, name, archive, scratch)
        return
    members, settings = _content(component(name), inputs)
    layer = oci.write_layer(members, scratch / "layer.tar")
    oci.write_archive(name, oci.configuration(settings, [layer], [f"{component(name)}, as locked"]), [layer], archive)


def _content(part: str, inputs: BuildInputs) -> tuple[list[Member], ContainerSettings]:
    if part == "kube-proxy":
        return proxy.members(inputs.root, inputs.programs[part]), ContainerSettings(env=_PATH)
    if part == "coredns":  # kubeadm's Deployment names arguments only
        return [tarball.file("coredns", inputs.programs[part], 0o755)], ContainerSettings(
            entrypoint=("/coredns",), env=_PATH
        )
    if part in _PLAIN:  # kubeadm's static pods name the program, without its folder
        program = tarball.file(f"usr/local/bin/{part}", inputs.programs[part], 0o755)
        return [program, tarball.folder("tmp", 0o1777)], ContainerSettings(env=_PATH)
    raise TestbedError(
        f"this kubeadm wants an image {part}, and nothing is known to make it of",
        hint="give a node image with --node-image",
    )
