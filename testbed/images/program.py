"""Build an image of one static program or of a folder, so that a driver can be installed without Docker and without a registry.

Used by `dra-testbed images program`, and by `python -m ci.peers`, which judges drivers of other projects.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path, PurePosixPath

from testbed.errors import UsageError
from testbed.images import elf, names, oci, tarball
from testbed.images.basics import PATH
from testbed.images.oci import ContainerSettings, Image
from testbed.images.store import Store, key_of
from testbed.progress import Progress

_FOLDER = "/usr/bin"
_STATIC = "link it statically (Go: CGO_ENABLED=0 go build)"
_WITH_LIBRARIES = "or name a folder that also contains the loader and the libraries"


def program(
    reference: str, source: Path, progress: Progress, *, at: str = "", entrypoint: Sequence[str] | None = None
) -> Image:
    """Return an image of a program, or of the content of a folder. It is rebuilt if the source, its name or the settings change.

    `at` is the program's path in the image (default: in /usr/bin), or the path of the folder's content (default: /). Without
    `entrypoint`, a program is its own, and a folder has none. Raise UsageError if the program could not start.
    """
    reference = names.check(reference)
    place = _place(source, at)
    words = tuple(entrypoint if entrypoint is not None else () if source.is_dir() else (place,))
    members = _members(source, place)
    _check_programs(source, members, words)
    settings = ContainerSettings(entrypoint=words, env={"PATH": PATH})
    key = key_of([reference, oci.architecture(), settings.as_json(), [_described(each) for each in members]])
    name = f"program-{re.sub(r'[^A-Za-z0-9.]', '_', source.resolve().name)}"
    with progress.step(f"image {reference}") as step:
        entry = Store().get_or_build(name, key, step, _builder(reference, members, settings, source.name))
    return Image(name, reference, entry.file, entry.facts["digest"])


def _place(source: Path, at: str) -> str:
    """Return the absolute path in the image."""
    place = at or ("/" if source.is_dir() else f"{_FOLDER}/{source.name}")
    if not place.startswith("/") or ".." in PurePosixPath(place).parts:
        raise UsageError(f"{at} is not an absolute path in the image", hint="--at /usr/bin/driver")
    return str(PurePosixPath(place))


def _members(source: Path, place: str) -> list[tarball.Member]:
    """Return the content of the image. Programs expect a /tmp for temporary files."""
    below = place.lstrip("/")
    found = list(tarball.tree(source, below)) if source.is_dir() else [tarball.file(below, source, 0o755)]
    temporary = [] if any(each.path == "tmp" for each in found) else [tarball.folder("tmp", 0o1777)]
    return [*found, *temporary]


def _check_programs(source: Path, members: Sequence[tarball.Member], words: Sequence[str]) -> None:
    """Raise UsageError if the source is one program that could not start, or if the entry point is not in the image."""
    paths = {f"/{each.path}" for each in members}
    if source.is_file():
        _check_static(source)
    if words and words[0].startswith("/") and words[0] not in paths:
        raise UsageError(
            f"the entry point {words[0]} is not in the image of {source}",
            hint="--entrypoint takes a path in the image; --at says where the program or the folder is",
        )
    started = [each.content for each in members if words and f"/{each.path}" == words[0]]
    if source.is_dir() and started and isinstance(started[0], Path):
        _check_loader(started[0], source, paths)


def _check_loader(program: Path, folder: Path, paths: Collection[str]) -> None:
    """Raise UsageError if the program needs a loader that is neither in the image nor reached by the folder's symlinks."""
    found = elf.read(program)
    loader = found.loader if found else ""
    if loader and loader not in paths and not (folder / loader.lstrip("/")).exists():
        raise UsageError(
            f"{program} is dynamically linked: it needs the loader {loader}, which {folder} does not contain",
            hint=f"{_STATIC}; or add the loader and the libraries to the folder",
        )


def _check_static(file: Path) -> None:
    found = elf.read(file)
    if found is None:
        raise UsageError(
            f"{file} is no ELF program for 64-bit Linux",
            hint="name a static program, or a folder with all that it needs",
        )
    if not found.runs_here:
        raise UsageError(
            f"{file} is a program for another architecture than {oci.architecture()}", hint="build it again"
        )
    if found.loader:
        raise UsageError(
            f"{file} is dynamically linked: it needs the loader {found.loader}, which its image would not contain",
            hint=f"{_STATIC}, {_WITH_LIBRARIES}",
        )


def _described(member: tarball.Member) -> list[object]:
    """Return what identifies a member in the key of the cache."""
    return [member.path, member.mode, member.target, _digest(member.content) if member.content is not None else None]


def _digest(content: Path | bytes) -> str:
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with content.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _builder(
    reference: str, members: Sequence[tarball.Member], settings: ContainerSettings, what: str
) -> Callable[[Path, Path], dict[str, str]]:
    def build(archive: Path, scratch: Path) -> dict[str, str]:
        layer = oci.write_layer(members, scratch / "layer.tar")
        config = oci.configuration(settings, [layer], [f"the program {what}"])
        return {"digest": oci.write_archive(reference, config, [layer], archive)}

    return build
