"""The sandbox image, which every pod needs, and the workload image, which the suites' pods run. Both are a static busybox.

For bringup and `dra-testbed images`, through testbed.images.
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

# The first process of a pod. The kernel keeps signals from it that it has no handler for, so a plain `sleep` would make each
# pod end late: the trap is the handler, and `wait`, unlike a program in the foreground, is interrupted by it. `wait` also
# reaps what other containers leave behind when they share their processes with the pod.
PAUSE = "trap 'exit 0' TERM INT; while :; do /bin/busybox sleep infinity & wait; done"


@dataclass(frozen=True)
class Recipe:
    """What an image of busybox holds beside it. `applets` is whether each of its programs has a symlink."""

    name: str
    version: int
    settings: ContainerSettings
    members: tuple[tarball.Member, ...] = ()
    applets: bool = False

    @property
    def reference(self) -> str:
        """The name that pods and containerd's configuration use."""
        return f"localhost/dra-testbed/{self.name}:{self.version}"

    @property
    def key(self) -> str:
        """Changes with the recipe. Which busybox it was is in the digest."""
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
    """The image whose container holds a pod's namespaces. It sleeps, reaps, and ends at once when it is told to."""
    return _cached_or_built(SANDBOX, progress)


def workload(progress: Progress) -> Image:
    """The image of the suites' pods: sh, env, sleep, ls, cat and what else a shell script wants, in 2 MB."""
    return _cached_or_built(WORKLOAD, progress)


def cached(recipe: Recipe) -> Image | None:
    """The image, when it was made before."""
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
