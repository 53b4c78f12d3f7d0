"""The programs that were fetched or built before. An entry appears whole or not at all; damage is noticed.

    ROOT/<program>/<version>-<origin>-<arch>/   the file and entry.json; a build says in its origin what of
    ROOT/.locks/                                who works on what
    ROOT/.parts/                                downloads in hand
    ROOT/.scratch/<pid>-<start>-<n>/            work in hand

Used by fetch.py and by whoever brings a program there (build.py, download.py, sources.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed import folders
from testbed.binaries.lock import Program, Upstream
from testbed.process import ProcessId

ORIGINS = ("download", "build", "system")
_count = itertools.count()


def host_arch() -> str:
    """This machine as Go and Kubernetes call it."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


@dataclass(frozen=True)
class Entry:
    """One cached program, as its manifest says."""

    program: str
    version: str
    origin: str
    sha256: str
    size: int
    mtime_ns: int


class BinaryCache:
    """The cache below one folder."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = (root or folders.cache() / "binaries").absolute()
        self.arch = host_arch()

    def folder(self, program: Program, origin: str) -> Path:
        """Where the program from that origin lies, or would lie."""
        source = f"build-{build_identity(program.upstream)}" if origin == "build" else origin
        return self.root / program.name / f"{program.version}-{source}-{self.arch}"

    def entry(self, program: Program, origin: str) -> Entry | None:
        """What the manifest says; None when there is none that can be read."""
        try:
            return Entry(**json.loads((self.folder(program, origin) / "entry.json").read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def look(
        self, program: Program, origins: Sequence[str] = ORIGINS, *, thorough: bool = False
    ) -> tuple[Path | None, str]:
        """The cached executable, and what is wrong with the one that is there, if something is."""
        trouble = ""
        for origin in origins:
            folder = self.folder(program, origin)
            if not folder.exists():
                continue
            trouble = self._damage(program, origin, thorough=thorough)
            if not trouble:
                return folder / program.file, ""
        return None, trouble

    def _damage(self, program: Program, origin: str, *, thorough: bool) -> str:
        """What is wrong with an entry. Size and time are compared always, the content when they differ."""
        file, entry = self.folder(program, origin) / program.file, self.entry(program, origin)
        if entry is None:
            return f"{file} has no manifest"
        try:
            now = file.stat()
        except OSError as gone:
            return f"{file}: {gone.strerror}"
        if now.st_size != entry.size:
            return f"{file} has {now.st_size} bytes instead of {entry.size}"
        if now.st_mtime_ns == entry.mtime_ns and not thorough:
            return ""
        if digest(file) != entry.sha256:
            return f"{file} is not what was stored there: its content changed"
        if now.st_mtime_ns != entry.mtime_ns:
            os.utime(file, ns=(entry.mtime_ns, entry.mtime_ns))
        return ""

    def add(self, program: Program, origin: str, file: Path, *, version: str = "") -> Path:
        """Move a finished executable from a scratch folder into the cache, in place of what was there."""
        target = self.folder(program, origin)
        with self.scratch() as scratch:
            made = scratch / "entry"
            made.mkdir()
            kept = made / program.file
            shutil.move(file, kept)
            kept.chmod(0o755)
            facts = kept.stat()
            entry = Entry(
                program.name,
                version or program.version,
                origin,
                digest(kept),
                facts.st_size,
                facts.st_mtime_ns,
            )
            (made / "entry.json").write_text(json.dumps(asdict(entry), indent=1) + "\n")
            for path in (kept, made / "entry.json", made):
                _fsync(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                target.rename(scratch / "old")
            made.rename(target)
            _fsync(target.parent)
        return target / program.file

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for work in hand, named after this process, so that others can tell when it is dead."""
        folder = self.root / ".scratch" / f"{_process_name()}-{next(_count)}"
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove the work that dead processes left."""
        for left in (self.root / ".scratch").glob("*-*-*"):
            pid, started, _ = left.name.split("-")
            if not ProcessId(int(pid), int(started)).alive:
                shutil.rmtree(left, ignore_errors=True)

    def part(self, name: str) -> Path:
        """Where the download of that name is collected; it outlives us, so that it can be resumed."""
        return self._shared(".parts") / name

    def lock_file(self, name: str) -> Path:
        """The file that whoever works on `name` holds a lock on."""
        return self._shared(".locks") / name

    def _shared(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def build_identity(upstream: Upstream) -> str:
    """What goes into a build, in short: the pinned sources and the flags, not which Go compiles them."""
    folder = upstream.module_folder
    parts = [(folder / name).read_bytes() for name in ("go.mod", "go.sum")]
    return hashlib.sha256(b"\0".join([*parts, upstream.build.model_dump_json().encode()])).hexdigest()[:10]


def digest(file: Path) -> str:
    """The sha256 of a file, in hex."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _process_name() -> str:
    me = ProcessId.of(os.getpid())
    return f"{os.getpid()}-{me.started if me else 0}"


def _fsync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
