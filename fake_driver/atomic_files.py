"""Atomic and durable file writes. The checkpoint, the CDI folder and live hardware use them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

_UNFINISHED = ".unfinished"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


def write_atomically(path: Path, content: bytes, mode: int, *, is_durable: bool = True) -> None:
    """Replace a file so that readers see either the old content or the new one; if durable, also after a power failure.

    Callers hold a lock for the path. The temporary file has a name that neither a CDI runtime nor the checkpoint reads.
    """
    unfinished = path.with_name(f".{path.name}{_UNFINISHED}")
    try:
        with os.fdopen(os.open(unfinished, _CREATE, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)  # regardless of the umask
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
    """Remove a file; if durable, it stays removed after a power failure. Return False if it did not exist."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    if is_durable:
        sync_folder(path.parent)
    return True


def sync_file(path: Path) -> None:
    """Flush a file's content to the disk; do nothing if the file no longer exists. Its name needs `sync_folder`."""
    with contextlib.suppress(FileNotFoundError):
        _sync(path, os.O_RDONLY)


def sync_folder(folder: Path) -> None:
    """Flush renames and removals in a folder to the disk."""
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def remove_unfinished(folder: Path, is_ours: Callable[[str], object] = lambda _name: True) -> None:
    """Remove the temporary files of a killed process if `is_ours` accepts the name of the target file. Callers hold the lock."""
    for temporary in folder.glob(f".*{_UNFINISHED}"):
        if is_ours(temporary.name.removeprefix(".").removesuffix(_UNFINISHED)):
            temporary.unlink(missing_ok=True)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
