"""Assemble the kind node image of two layers, and cache it. Used by bringup for kind clusters and by `dra-testbed images node`.

The lower layer is Debian, the upper layer has everything that depends on versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed import binaries
from testbed.binaries import Lock
from testbed.images import basics, oci, tarball
from testbed.images.node import kind_files, own_files, root, system_images
from testbed.images.node.libraries import Libraries
from testbed.images.node.preload import preload
from testbed.images.node.system_images import BuildInputs
from testbed.images.oci import ContainerSettings, Image
from testbed.images.store import CacheEntry, Store, key_of
from testbed.images.tarball import Member
from testbed.progress import Progress, Step

RECIPE = 1  # increase it when the same inputs give another image

# The same as in kind's Dockerfile. systemd must know that it runs in a container, and shuts down on a signal of its own.
SETTINGS = ContainerSettings(
    entrypoint=("/usr/local/bin/entrypoint", "/sbin/init"), env={"container": "docker"}, stop_signal="SIGRTMIN+3"
)

_INSTALL_FOLDERS = {
    "kubeadm": "usr/bin", "kubelet": "usr/bin", "kubectl": "usr/bin",
    "containerd": "usr/local/bin", "containerd-shim-runc-v2": "usr/local/bin", "ctr": "usr/local/bin", "crictl": "usr/local/bin",
    "runc": "usr/local/sbin",
    "cni-ptp": "opt/cni/bin", "cni-bridge": "opt/cni/bin", "cni-loopback": "opt/cni/bin", "cni-host-local": "opt/cni/bin",
    "cni-portmap": "opt/cni/bin",
}  # fmt: skip
_IN_IMAGES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns")
_OPTIONAL = ("coredns", "crictl")  # not in every lock file


def node(lock: Lock, progress: Progress) -> Image:
    """Return the image from the cache, or build it."""
    found = cached_node(lock)
    if found:
        return found
    root.check_tools()
    programs = binaries.ensure(lock, _programs(lock), progress=progress)
    sandbox = basics.sandbox(progress)
    with progress.step("Debian for node images") as step:
        debian = root.layer(step)
    with progress.step(f"image node {lock.kubernetes}") as step:
        node_build = _NodeBuild(lock, programs, debian, sandbox, step)
        return _image(lock, Store().get_or_build("node", _key(lock), step, node_build.build))


def cached_node(lock: Lock) -> Image | None:
    """Return the image if it is in the cache and its inputs have not changed."""
    entry = Store().find("node", _key(lock))
    return _image(lock, entry) if entry else None


@dataclass(frozen=True)
class _NodeBuild:
    """The build of one node image, with its inputs."""

    lock: Lock
    programs: Mapping[str, Path]
    debian: CacheEntry
    sandbox: Image
    step: Step

    def build(self, archive: Path, scratch: Path) -> dict[str, str]:
        self.step.note("unpacking Debian")
        unpacked = root.unpack(self.debian, scratch / "root")
        upper = oci.write_layer(self._members(unpacked, scratch), scratch / "upper.tar")
        layers = [oci.Layer(self.debian.file, self.debian.facts["digest"], self.debian.size), upper]
        self.step.note("writing the image")
        config = oci.configuration(SETTINGS, layers, ["Debian, from packages", f"a node of Kubernetes {self._version}"])
        return {
            "digest": oci.write_archive(_reference(self.lock), config, layers, archive),
            "kubernetes": self._version,
        }

    @property
    def _version(self) -> str:
        return self.lock.kubernetes

    def _members(self, unpacked: Path, scratch: Path) -> Iterator[Member]:
        kind = kind_files.fetch(self.lock, scratch, self.step)
        yield from kind.members()
        yield from own_files.members()
        yield tarball.file("etc/containerd/cri-base.json", kind_files.base_spec(self.programs["ctr"]))
        yield tarball.file("kind/version", f"v{self._version}")
        yield from self._program_members(unpacked)
        yield from self._images(kind.sandbox_image(), unpacked, scratch)

    def _program_members(self, unpacked: Path) -> Iterator[Member]:
        """Yield the programs. A runc that needs a newer C library than the node's is left out, so that Debian's runc is used."""
        for name, folder in _INSTALL_FOLDERS.items():
            program = self.programs.get(name)
            if program and (name != "runc" or Libraries(unpacked).satisfy(program)):
                yield tarball.file(f"{folder}/{self.lock.program(name).file}", program, 0o755)

    def _images(self, sandbox_image: str, unpacked: Path, scratch: Path) -> Iterator[Member]:
        inputs = BuildInputs(self.programs, unpacked, self.sandbox)
        listed = system_images.required(self.programs["kubeadm"], self._version)
        names = system_images.buildable(list(dict.fromkeys([*listed, sandbox_image])), inputs)
        archives = [scratch / f"image-{number}.tar" for number, _ in enumerate(names)]
        for name, archive in zip(names, archives, strict=True):
            self.step.note(f"image {system_images.component(name)}")
            system_images.write(name, inputs, archive, scratch)
        self.step.note(f"importing {len(names)} images into the node")
        yield from preload(self.programs, archives, names, scratch)
        self.step.note("writing the layer")


def _image(lock: Lock, entry: CacheEntry) -> Image:
    return Image("node", _reference(lock), entry.file, entry.facts["digest"])


def _reference(lock: Lock) -> str:
    """Return the image's name. It depends on the content, so that an older image in a container engine is not used instead."""
    return f"localhost/dra-testbed/node:v{lock.kubernetes}-{_key(lock)[:12]}"


def _programs(lock: Lock) -> list[str]:
    names = [*_INSTALL_FOLDERS, *_IN_IMAGES]
    return [name for name in names if name in lock.programs or name not in _OPTIONAL]


def _key(lock: Lock) -> str:
    versions = {name: lock.program(name).version for name in [*_programs(lock), "kind"]}
    inputs = [root.key(), basics.SANDBOX.key, own_files.digest(), SETTINGS.as_json()]
    return key_of(["kind node", RECIPE, oci.architecture(), versions, inputs])
