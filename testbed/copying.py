"""Copies files out of a folder that others can write, such as a node's disk, without following links. Used by providers and bringup."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a named pipe would wait for its writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def copy_tree(root: Path, inside: str, into: Path) -> None:
    """Copy the regular files of the folder `inside`, a path below `root`. No link below `root` is followed.

    Files that disappear meanwhile, links, devices and named pipes are skipped. Nothing happens if there is no such folder.
    """
    with contextlib.ExitStack() as opened:
        folder = _open(opened, str(root), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, None)
        for part in Path(inside).parts:
            folder = None if folder is None else _open(opened, part, _FOLDER, folder)
        if folder is not None:
            _copy_folder(folder, into)


def copy_file(source: Path, target: Path) -> bool:
    """Copy a regular file. Return False if there is none, or if it is a link."""
    with contextlib.ExitStack() as opened:
        file = _open(opened, str(source), _FILE, None)
        return file is not None and _copy_content(file, target)


def _copy_folder(folder: int, into: Path) -> None:
    for parent, _, names, descriptor in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        target = into / parent
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            with contextlib.ExitStack() as opened:
                file = _open(opened, name, _FILE, descriptor)
                if file is not None:
                    _copy_content(file, target / name)


def _copy_content(file: int, target: Path) -> bool:
    if not stat.S_ISREG(os.fstat(file).st_mode):
        return False
    target.unlink(missing_ok=True)
    written = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(file, "rb", closefd=False) as source, os.fdopen(written, "wb") as copy:
        shutil.copyfileobj(source, copy)
    return True


def _open(opened: contextlib.ExitStack, path: str, flags: int, folder: int | None) -> int | None:
    try:
        descriptor = os.open(path, flags, dir_fd=folder)
    except OSError:  # a link, or it was removed
        return None
    opened.callback(os.close, descriptor)
    return descriptor
