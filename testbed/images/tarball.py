"""Tar files that are the same to the byte whenever their content is: sorted, no times, no owners, no modes but the ones we say.

For oci.py: a layer is such a file, and so is the archive around the layers. Contents are streamed; nothing is held in memory.
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
    """One thing in a tar file: a file when it has content, a symlink when it has a target, else a folder."""

    path: str
    mode: int
    content: Path | bytes | None = None
    target: str = ""


def folder(path: str, mode: int = 0o755) -> Member:
    """A folder. Those above a member need not be named; name one to give it another mode, or to have it empty."""
    return Member(path, mode)


def file(path: str, content: Path | bytes | str, mode: int = 0o644) -> Member:
    """A file, with the content given or taken from a file of this host."""
    return Member(path, mode, content.encode() if isinstance(content, str) else content)


def link(path: str, target: str) -> Member:
    """A symlink."""
    return Member(path, 0o777, target=target)


def tree(root: Path, below: str = "") -> Iterator[Member]:
    """A folder of this host with all that is in it. Of the modes only "executable" is kept; other special files are left out."""
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
    """The tar file. The folders above each member are put before it; two members of one path are a mistake."""
    with tarfile.open(into, "w", format=tarfile.PAX_FORMAT) as tar:
        for member in _ordered(members):
            with _open_content(member.content) as content:
                tar.addfile(_header(member, content), content)


def _ordered(members: Iterable[Member]) -> list[Member]:
    named: dict[PurePosixPath, Member] = {}
    for member in members:
        path = PurePosixPath(member.path)
        if path in named and named[path] != member:
            raise ValueError(f"{path} is in the archive twice")
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
