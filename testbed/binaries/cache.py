"""The cache of fetched and built programs. Entries are added atomically, and damaged ones are detected.

    ROOT/<program>/<version>-<origin>-<arch>/   the file and entry.json; the origin of a build has a digest of its sources
    ROOT/.locks/                                locks of processes that fetch
    ROOT/.parts/                                partial downloads
    ROOT/.scratch/<pid>-<start>-<n>/            temporary files of a process

Used by `fetch` and the sources.
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
    """Return this machine's architecture as Go and Kubernetes name it."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


@dataclass(frozen=True)
class CachedProgram:
    """The manifest of one cached program."""

    program: str
    version: str
    origin: str
    sha256: str
    size: int
    mtime_ns: int


class BinaryCache:
    """The cache in one folder."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = (root or folders.cache() / "binaries").absolute()
        self.arch = host_arch()

    def folder(self, program: Program, origin: str) -> Path:
        """Return the folder of a program from an origin, whether it exists or not."""
        source = f"build-{build_identity(program.upstream)}" if origin == "build" else origin
        return self.root / program.name / f"{program.version}-{source}-{self.arch}"

    def entry(self, program: Program, origin: str) -> CachedProgram | None:
        """Return a program's manifest, or None if it cannot be read."""
        try:
            return CachedProgram(**json.loads((self.folder(program, origin) / "entry.json").read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def find(
        self, program: Program, origins: Sequence[str] = ORIGINS, *, verify: bool = False
    ) -> tuple[Path | None, str]:
        """Return the cached executable or None, and the damage if there is a damaged one. `verify` compares checksums."""
        damage = ""
        for origin in origins:
            folder = self.folder(program, origin)
            if not folder.exists():
                continue
            damage = self._damage(program, origin, verify=verify)
            if not damage:
                return folder / program.file, ""
        return None, damage

    def _damage(self, program: Program, origin: str, *, verify: bool) -> str:
        """Return what is wrong with an entry. The checksum is compared only with `verify`, or if the file's time differs."""
        file, entry = self.folder(program, origin) / program.file, self.entry(program, origin)
        if entry is None:
            return f"{file} has no manifest"
        try:
            now = file.stat()
        except OSError as gone:
            return f"{file}: {gone.strerror}"
        if now.st_size != entry.size:
            return f"{file} has {now.st_size} bytes instead of {entry.size}"
        if now.st_mtime_ns == entry.mtime_ns and not verify:
            return ""
        if digest(file) != entry.sha256:
            return f"{file} has another checksum than when it was cached"
        if now.st_mtime_ns != entry.mtime_ns:
            os.utime(file, ns=(entry.mtime_ns, entry.mtime_ns))
        return ""

    def add(self, program: Program, origin: str, file: Path, *, version: str = "") -> Path:
        """Move a finished executable into the cache, and replace an existing one."""
        target = self.folder(program, origin)
        with self.scratch() as scratch:
            folder = scratch / "entry"
            folder.mkdir()
            path = folder / program.file
            shutil.move(file, path)
            path.chmod(0o755)
            stat = path.stat()
            entry = CachedProgram(
                program.name, version or program.version, origin, digest(path), stat.st_size, stat.st_mtime_ns
            )
            (folder / "entry.json").write_text(json.dumps(asdict(entry), indent=1) + "\n")
            for each in (path, folder / "entry.json", folder):
                _fsync(each)
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                target.rename(scratch / "old")
            folder.rename(target)
            _fsync(target.parent)
        return target / program.file

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Create a temporary folder. It is named after this process, so that others can remove it when the process is dead."""
        folder = self.root / ".scratch" / f"{_process_name()}-{next(_count)}"
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove the temporary folders of dead processes."""
        for folder in (self.root / ".scratch").glob("*-*-*"):
            pid, started, _ = folder.name.split("-")
            if not ProcessId(int(pid), int(started)).alive:
                shutil.rmtree(folder, ignore_errors=True)

    def partial_download(self, name: str) -> Path:
        """Return the path of a partial download, which a later process can resume."""
        return self._shared(".parts") / name

    def lock_file(self, name: str) -> Path:
        """Return the lock file for `name`."""
        return self._shared(".locks") / name

    def _shared(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def build_identity(upstream: Upstream) -> str:
    """Return a short digest of a build's pinned sources and flags, but not of the Go version."""
    folder = upstream.module_folder
    parts = [(folder / name).read_bytes() for name in ("go.mod", "go.sum")]
    return hashlib.sha256(b"\0".join([*parts, upstream.build.model_dump_json().encode()])).hexdigest()[:10]


def digest(file: Path) -> str:
    """Return the sha256 of a file, in hex."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _process_name() -> str:
    this = ProcessId.of(os.getpid())
    return f"{os.getpid()}-{this.started if this else 0}"


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
