"""Build the images that kubeadm needs on a node, each from a locked program. Used by assemble.py.

The images have the names and versions that kubeadm asks for, but contain the locked programs: if another patch version of etcd is
locked, the image contains that version under the name that kubeadm expects.
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
    """The inputs of the images: programs by name, an unpacked Debian, and the sandbox image."""

    programs: Mapping[str, Path]
    root: Path
    sandbox: Image


def required(kubeadm: Path, version: str) -> list[str]:
    """Return the names of the images that kubeadm pulls for this version."""
    command: list[str | Path] = [kubeadm, "config", "images", "list", "--kubernetes-version", f"v{version}"]
    return process.run(
        command, hint="is the cached kubeadm damaged? dra-testbed binaries fetch --verify"
    ).stdout.split()


def component(name: str) -> str:
    """Return the last part of a name without its tag: `coredns` for `registry/coredns/coredns:v1`."""
    return name.rpartition("/")[2].partition(":")[0]


def buildable(names: Sequence[str], inputs: BuildInputs) -> list[str]:
    """Return the images that can be built. Only coredns may be missing: without it just the DNS names of Services do not work."""
    return [name for name in names if component(name) != "coredns" or "coredns" in inputs.programs]


def write(name: str, inputs: BuildInputs, archive: Path, scratch: Path) -> None:
    """Write the image with this name as an archive."""
    if component(name) == "pause":
        docker.rewrite(inputs.sandbox.archive, name, archive, scratch)
        return
    members, settings = _content(component(name), inputs)
    layer = oci.write_layer(members, scratch / "layer.tar")
    oci.write_archive(name, oci.configuration(settings, [layer], [f"{component(name)}, as locked"]), [layer], archive)


def _content(name: str, inputs: BuildInputs) -> tuple[list[Member], ContainerSettings]:
    if name == "kube-proxy":
        return proxy.members(inputs.root, inputs.programs[name]), ContainerSettings(env=_PATH)
    if name == "coredns":  # kubeadm's Deployment has only arguments
        return [tarball.file("coredns", inputs.programs[name], 0o755)], ContainerSettings(
            entrypoint=("/coredns",), env=_PATH
        )
    if name in _PLAIN:  # kubeadm's static pods name the program without its folder
        program = tarball.file(f"usr/local/bin/{name}", inputs.programs[name], 0o755)
        return [program, tarball.folder("tmp", 0o1777)], ContainerSettings(env=_PATH)
    raise TestbedError(
        f"cannot build image {name}, which this version of kubeadm needs: its content is unknown",
        hint="give a node image with --node-image",
    )
