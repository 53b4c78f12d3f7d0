"""The JSON files in which a testbed's state is kept: durable, atomic writes, and one error for every kind of damage.

Used by bringup and by the providers.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from testbed.errors import TestbedError

T = TypeVar("T")
Content = dict[str, Any]

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


class DamagedState(TestbedError):
    """A state file is empty, cut off, or has a content that dra-testbed does not write."""


def write(path: Path, content: Content) -> None:
    """Replace a JSON file so that readers see the old or the new one, also after a power failure. Only its owner can read it."""
    write_text(path, json.dumps(content, indent=1))


def write_text(path: Path, text: str, *, is_durable: bool = True) -> None:
    """Replace a file so that readers see the old or the new one; if durable, also after a power failure."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(unfinished, _CREATE, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if is_durable:
                os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
    if is_durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush creations, renames and removals in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: Path, build: Callable[[Content], T]) -> T | None:
    """Return what `build` makes of the file's content; None if there is no file. Raise DamagedState if that fails."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise TypeError("it contains no JSON object")  # noqa: TRY301 - all kinds of damage are reported in one place
        return build(content)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as damage:
        raise DamagedState(
            f"{path} is damaged: {_reason(path, damage)}",
            hint="remove the testbed with `dra-testbed down` or `sweep`, and bring it up again",
        ) from damage


def typed(content: Content, key: str, kind: type[T]) -> T:
    """Return a value of the content. Raise TypeError if it has another type, and KeyError if it is missing."""
    value = content[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{key} is of type {type(value).__name__}, not {kind.__name__}")
    return value


def strings(content: Content, key: str) -> list[str]:
    """Return a list of strings. Raise TypeError if it is anything else, and KeyError if it is missing."""
    values = typed(content, key, list)
    return [typed({key: each}, key, str) for each in values]


def string_map(content: Content, key: str) -> dict[str, str]:
    """Return an object whose values are strings. Raise TypeError if it is anything else, and KeyError if it is missing."""
    values = typed(content, key, dict)
    return {name: typed(values, name, str) for name in values}


def _reason(path: Path, damage: Exception) -> str:
    if path.stat().st_size == 0:
        return "it is empty"
    if isinstance(damage, KeyError):
        return f"{damage.args[0]} is missing"
    if isinstance(damage, RecursionError):
        return "it is nested too deeply"
    return f"it is not JSON: {damage}" if isinstance(damage, json.JSONDecodeError) else str(damage)
