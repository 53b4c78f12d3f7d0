"""Locks digests of downloads (`pin`), so that a file that a site replaces later is refused. Used by the CLI on a connected machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from testbed import folders
from testbed.binaries.cache import BinaryCache, digest
from testbed.binaries.download import ARCHES, DownloadSource
from testbed.binaries.lock import DIGESTS, Lock, Program
from testbed.binaries.sources import FetchRequest, Unavailable
from testbed.errors import TestbedError
from testbed.progress import Progress, Step

_HEADER = """\
# Digests of downloads by their official URL. `dra-testbed binaries pin` writes them on a machine that reaches the release sites; README.md.
# A download without a digest is compared with the checksum that its own site publishes. To lock a digest again, delete its line.
"""


@dataclass(frozen=True)
class Pinned:
    """What `pin` did: the lock file, the URLs that it added, and the number of those that were there."""

    file: Path
    added: Sequence[str]
    kept: int


def pin(lock: Lock, programs: Sequence[str], *, progress: Progress, arches: Sequence[str] = ()) -> Pinned:
    """Download what has no digest yet, verify it, and add its digest to the lock file. Raise TestbedError if a download fails.

    Without `arches`, this is done for both architectures. Each digest is written at once, so that an interrupted call can be repeated.
    """
    target, store = folders.data("versions") / DIGESTS, BinaryCache()
    known: dict[str, str] = yaml.safe_load(target.read_text()) or {}
    wanted = _downloads([lock.program(name) for name in programs], arches or ARCHES)
    added = [url for url in wanted if url not in known]
    for url in added:
        program, arch = wanted[url]
        with progress.step(url.rsplit("/", 1)[1]) as step, _as_error():
            known[url] = _digest_of(program, arch, store, step)
            _write(target, known)
    return Pinned(target, added, len(wanted) - len(added))


def _downloads(programs: Sequence[Program], arches: Sequence[str]) -> dict[str, tuple[Program, str]]:
    """Return each file that upstream publishes, by URL, with a program in it and its architecture."""
    return {
        program.url(arch): (program, arch) for program in programs if program.upstream.download.url for arch in arches
    }


def _digest_of(program: Program, arch: str, store: BinaryCache, step: Step) -> str:
    def unused(*_: object) -> None:
        """Do nothing: the program is not cached."""

    part = DownloadSource().verified(program, arch, FetchRequest([program], store, step, unused, unused))
    found = digest(part)
    part.unlink()
    return found


def _write(file: Path, digests: Mapping[str, str]) -> None:
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        unfinished.write_text(_HEADER + yaml.safe_dump(dict(digests), width=1000))
        unfinished.replace(file)
    except OSError as refused:
        raise TestbedError(
            f"cannot write {file}: {refused.strerror}", hint="run this in a checkout of dra-testbed that you can write"
        ) from refused


@contextlib.contextmanager
def _as_error() -> Iterator[None]:
    try:
        yield
    except Unavailable as failed:
        raise TestbedError(str(failed), hint=failed.hint or "run this on a machine that reaches the site") from failed
