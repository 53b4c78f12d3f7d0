"""The sandbox image, which every pod needs, and the workload image, which the suites' pods run. Both contain a static busybox.

Used by bringup and `dra-testbed images`, through testbed.images.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.images import busybox, oci, tarball
from testbed.images.oci import ContainerSettings, Image
from testbed.images.store import CacheEntry, Store, key_of
from testbed.progress import Progress

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# The first process of a pod (PID 1). The kernel does not deliver signals to it without a handler, so with a plain `sleep` each
# pod would end only after its grace period. The trap is a handler, and it interrupts `wait`, unlike a program in the foreground.
# `wait` also reaps orphaned processes of other containers if the pod shares its PID namespace.
PAUSE = "trap 'exit 0' TERM INT; while :; do /bin/busybox sleep infinity & wait; done"


@dataclass(frozen=True)
class Recipe:
    """The content of an image besides busybox. If `applets` is True, each busybox applet gets a symlink."""

    name: str
    version: int
    settings: ContainerSettings
    members: tuple[tarball.Member, ...] = ()
    applets: bool = False

    @property
    def reference(self) -> str:
        """Return the name that pods and containerd's configuration use."""
        return f"localhost/dra-testbed/{self.name}:{self.version}"

    @property
    def key(self) -> str:
        """Return the cache key, which changes with the recipe but not with the version of busybox."""
        return key_of([self.reference, oci.architecture(), self.settings.as_json(), repr(self.members), self.applets])


SANDBOX = Recipe("sandbox", 1, ContainerSettings(entrypoint=("/bin/busybox", "sh", "-c", PAUSE), user="65535:65535"))

WORKLOAD = Recipe(
    "workload",
    1,
    ContainerSettings(cmd=("sh",), env={"PATH": PATH, "HOME": "/root"}),
    (
        tarball.file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"),
        tarball.file("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
        tarball.folder("root", 0o700),
        tarball.folder("tmp", 0o1777),
        tarball.link("sbin", "bin"),
        tarball.link("usr/bin", "../bin"),
        tarball.link("usr/sbin", "../bin"),
    ),
    applets=True,
)


def sandbox(progress: Progress) -> Image:
    """Return the image whose container holds a pod's namespaces. It reaps processes and ends at once on SIGTERM."""
    return _cached_or_built(SANDBOX, progress)


def workload(progress: Progress) -> Image:
    """Return the image of the suites' pods: sh, env, sleep, ls, cat and the other applets of busybox, in 2 MB."""
    return _cached_or_built(WORKLOAD, progress)


def cached(recipe: Recipe) -> Image | None:
    """Return the image if it is in the cache."""
    entry = Store().find(recipe.name, recipe.key)
    return _image_of(recipe, entry) if entry else None


def _cached_or_built(recipe: Recipe, progress: Progress) -> Image:
    found = cached(recipe)
    if found:
        return found
    with progress.step(f"image {recipe.name}") as step:
        entry = Store().get_or_build(recipe.name, recipe.key, step, _builder(recipe))
    return _image_of(recipe, entry)


def _image_of(recipe: Recipe, entry: CacheEntry) -> Image:
    return Image(recipe.name, recipe.reference, entry.file, entry.facts["digest"])


def _builder(recipe: Recipe) -> Callable[[Path, Path], dict[str, str]]:
    def build(archive: Path, scratch: Path) -> dict[str, str]:
        program = busybox.static_busybox(scratch)
        names = busybox.applets(program) if recipe.applets else []
        links = [tarball.link(f"bin/{name}", "busybox") for name in names]
        members = [tarball.file("bin/busybox", program, 0o755), *links, *recipe.members]
        layer = oci.write_layer(members, scratch / "layer.tar")
        config = oci.configuration(recipe.settings, [layer], ["a static busybox"])
        return {"digest": oci.write_archive(recipe.reference, config, [layer], archive)}

    return build
