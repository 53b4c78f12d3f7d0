"""Files that are there whole or not at all. The checkpoint, the CDI folder and the server use it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

_UNFINISHED = ".unfinished"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


def write_atomically(path: Path, content: bytes, mode: int, *, is_durable: bool = True) -> None:
    """Write a file so that readers see the old content or the new one, and a power cut keeps one of them, if it is lasting.

    Callers hold a lock for the path. The unfinished file has a name that neither a CDI runtime nor the checkpoint reads.
    """
    unfinished = path.with_name(f".{path.name}{_UNFINISHED}")
    try:
        with os.fdopen(os.open(unfinished, _NEW, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)  # whatever the umask
            file.write(content)
            file.flush()
            if is_durable:
                os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    if is_durable:
        sync_folder(path.parent)


def remove(path: Path, *, is_durable: bool = True) -> bool:
    """Remove a file, for good if it is lasting; False when it was not there."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    if is_durable:
        sync_folder(path.parent)
    return True


def sync_file(path: Path) -> None:
    """Make a file's content survive a power cut; one that is gone needs nothing. For its name there is `sync_folder`."""
    with contextlib.suppress(FileNotFoundError):
        _sync(path, os.O_RDONLY)


def remove_unfinished(folder: Path, is_ours: Callable[[str], object] = lambda _name: True) -> None:
    """Remove what a killed process left unfinished; `is_ours` knows the names of its files. Callers hold the lock."""
    for leftover in folder.glob(f".*{_UNFINISHED}"):
        if is_ours(leftover.name.removeprefix(".").removesuffix(_UNFINISHED)):
            leftover.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames and removals in a folder survive a power cut."""
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, how: int) -> None:
    handle = os.open(path, how | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
