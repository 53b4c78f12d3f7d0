"""The cache of images and of layers that are expensive to build. Used by all modules that build images.

    ROOT/<kind>-<key>/{content.tar, entry.json}     an entry; the key is a hash of its inputs
    ROOT/<kind>.lock                                held while an entry of that kind is being built
    ROOT/<kind>.part/                               the unfinished entry, which is renamed when it is complete

The next build of the same kind removes the unfinished entry of a process that was killed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from testbed import folders
from testbed.errors import TestbedError
from testbed.progress import Step

_CONTENT, _FACTS = "content.tar", "entry.json"
_MAX_ENTRIES = 4
_MIN_AGE = 3600.0


@dataclass(frozen=True)
class CacheEntry:
    """A file in the cache with the facts that its builder returned."""

    file: Path
    facts: Mapping[str, Any]
    size: int


@dataclass(frozen=True)
class _Record:
    sha256: str
    size: int
    mtime_ns: int
    facts: dict[str, Any]


def key_of(parts: object) -> str:
    """Return the key of an entry with these inputs, which can be any JSON data."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class Store:
    """The cache in one folder."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or folders.cache() / "images"

    def find(self, kind: str, key: str) -> CacheEntry | None:
        """Return the entry if it exists and is not damaged."""
        folder = self._folder_of(kind, key)
        try:
            record = _Record(**json.loads((folder / _FACTS).read_text()))
            if not _is_intact(folder / _CONTENT, record):
                return None
        except (OSError, ValueError, TypeError):
            return None
        with contextlib.suppress(OSError):
            os.utime(folder)  # the time of the last use, for _prune
        return CacheEntry(folder / _CONTENT, record.facts, record.size)

    def get_or_build(
        self, kind: str, key: str, step: Step, build: Callable[[Path, Path], Mapping[str, Any]]
    ) -> CacheEntry:
        """Return the entry from the cache, or build it: `build(file, scratch_folder)` writes the file and returns its facts."""
        try:
            with self._locked(kind, step):
                found = self.find(kind, key)
                if found is None:
                    self._build(kind, key, build)
                    self._prune(kind)
                    found = self.find(kind, key)
        except OSError as refused:
            path = refused.filename or self.root
            raise TestbedError(
                f"cannot build the image or layer {kind!r}: {path}: {refused.strerror}",
                hint="free disk space, or set DRA_TESTBED_CACHE to a folder on another disk",
            ) from refused
        if found is None:
            raise TestbedError(f"{self._folder_of(kind, key)} was changed while it was being built", hint="try again")
        return found

    def _build(self, kind: str, key: str, build: Callable[[Path, Path], Mapping[str, Any]]) -> None:
        part, folder = self.root / f"{kind}.part", self._folder_of(kind, key)
        shutil.rmtree(part, ignore_errors=True)
        made, scratch = part / "made", part / "scratch"
        made.mkdir(parents=True)
        scratch.mkdir()
        try:
            facts = build(made / _CONTENT, scratch)
            (made / _FACTS).write_text(json.dumps(asdict(_record_of(made / _CONTENT, facts)), indent=1) + "\n")
            if folder.exists():
                folder.rename(part / "damaged")
            made.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _prune(self, kind: str) -> None:
        """Delete the least recently used entries, except for those that another process may still be reading."""
        newest_first = sorted(self.root.glob(f"{kind}-*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
        for folder in newest_first[_MAX_ENTRIES:]:
            if time.time() - folder.stat().st_mtime > _MIN_AGE:
                shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def _locked(self, kind: str, step: Step) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True)
        lock, doing = FileLock(self.root / f"{kind}.lock"), step.doing
        try:
            lock.acquire(timeout=0)
        except Timeout:
            step.note(f"waiting for another process that builds {kind}")
            lock.acquire()
            step.note(doing)
        try:
            yield
        finally:
            lock.release()

    def _folder_of(self, kind: str, key: str) -> Path:
        return self.root / f"{kind}-{key[:24]}"


def _record_of(file: Path, facts: Mapping[str, Any]) -> _Record:
    now = file.stat()
    return _Record(_sha256(file), now.st_size, now.st_mtime_ns, dict(facts))


def _is_intact(file: Path, record: _Record) -> bool:
    """Return True if size and modification time match; if only the time differs, as in a copied cache, compare the content."""
    now = file.stat()
    if now.st_size != record.size:
        return False
    if now.st_mtime_ns == record.mtime_ns:
        return True
    if _sha256(file) != record.sha256:
        return False
    os.utime(file, ns=(record.mtime_ns, record.mtime_ns))
    return True


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
