"""Write reproducible tar files: sorted members, no times, no owners, explicit modes; the same content gives the same bytes.

Used by oci.py for layers and for archives of images. File contents are streamed, not read into memory.
"""

from __future__ import annotations

import io
import stat
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO


@dataclass(frozen=True)
class Member:
    """A member of a tar file: a file if it has content, a symlink if it has a target, otherwise a folder."""

    path: str
    mode: int
    content: Path | bytes | None = None
    target: str = ""


def folder(path: str, mode: int = 0o755) -> Member:
    """Return a folder. Parent folders are added automatically; name one only if it is empty or needs another mode."""
    return Member(path, mode)


def file(path: str, content: Path | bytes | str, mode: int = 0o644) -> Member:
    """Return a file with the given content, or with the content of a file on this host."""
    return Member(path, mode, content.encode() if isinstance(content, str) else content)


def link(path: str, target: str) -> Member:
    """Return a symlink."""
    return Member(path, 0o777, target=target)


def tree(root: Path, below: str = "") -> Iterator[Member]:
    """Yield the content of a folder on this host. Only the executable bit of modes is kept; special files are left out."""
    for entry in sorted(root.iterdir()):
        path = f"{below}/{entry.name}" if below else entry.name
        if entry.is_symlink():
            yield link(path, str(entry.readlink()))
        elif entry.is_dir():
            yield folder(path)
            yield from tree(entry, path)
        elif entry.is_file():
            yield file(path, entry, 0o755 if entry.stat().st_mode & stat.S_IXUSR else 0o644)


def write(members: Iterable[Member], into: Path) -> None:
    """Write a tar file with these members and their parent folders. Raises ValueError if two members have the same path."""
    with tarfile.open(into, "w", format=tarfile.PAX_FORMAT) as tar:
        for member in _ordered(members):
            with _open_content(member.content) as content:
                tar.addfile(_header(member, content), content)


def _ordered(members: Iterable[Member]) -> list[Member]:
    named: dict[PurePosixPath, Member] = {}
    for member in members:
        path = PurePosixPath(member.path)
        if path in named and named[path] != member:
            raise ValueError(f"two different members of the archive have the path {path}")
        named[path] = member
    above = {parent for path in named for parent in path.parents if parent.parts} - named.keys()
    named.update({path: folder(str(path)) for path in above})
    return [named[path] for path in sorted(named, key=lambda path: path.parts)]


def _header(member: Member, content: BinaryIO) -> tarfile.TarInfo:
    info = tarfile.TarInfo(str(PurePosixPath(member.path)))
    info.mode = member.mode
    if member.target:
        info.type, info.linkname = tarfile.SYMTYPE, member.target
    elif member.content is None:
        info.type = tarfile.DIRTYPE
    else:
        info.size = content.seek(0, io.SEEK_END)
        content.seek(0)
    return info


def _open_content(content: Path | bytes | None) -> BinaryIO:
    return content.open("rb") if isinstance(content, Path) else io.BytesIO(content or b"")
