"""Fetches programs from the first source that has them (`ensure`). Used by bringup and the CLI.

The programs of one upstream are fetched together and under a lock, so that two processes do not fetch them twice.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from testbed.binaries.cache import ORIGINS, BinaryCache, CachedProgram
from testbed.binaries.lock import Lock, Program, Upstream
from testbed.binaries.sources import Cached, FetchRequest, Folder, Source, System, Unavailable
from testbed.errors import TestbedError, UsageError, did_you_mean
from testbed.progress import Progress, Step

NAMES = ("cache", *ORIGINS)
_DONE = {"download": "downloaded", "build": "built", "system": "from the distribution's package"}


def ensure(
    lock: Lock,
    programs: Sequence[str],
    *,
    progress: Progress,
    sources: Sequence[str] | None = None,
    cache: Path | None = None,
    verify: bool = False,
) -> dict[str, Path]:
    """Return the absolute path of each program, by name. Raise TestbedError if no source has one.

    `sources` are values of `--binaries-from`; `cache` replaces the user's cache; `verify` compares checksums of cached programs.
    This shows progress steps, so do not call it within a step.
    """
    wanted = [lock.program(name) for name in dict.fromkeys(programs)]
    fetcher = Fetcher(lock, wanted, choose_sources(sources, verify=verify), BinaryCache(cache), progress)
    with _cache_errors(fetcher.store):
        fetcher.use_local()
        for batch in fetcher.batches():
            fetcher.fetch(batch)
    return {program.name: fetcher.found[program.name] for program in wanted}


def inventory(lock: Lock, *, cache: Path | None = None) -> dict[str, tuple[Path, CachedProgram] | None]:
    """Return the cached file and its entry for each program of the lock, or None."""
    store = BinaryCache(cache)
    held: dict[str, tuple[Path, CachedProgram] | None] = dict.fromkeys(lock.programs)
    for name, program in lock.programs.items():
        for origin in reversed(ORIGINS):
            path, _ = store.find(program, [origin])
            entry = store.entry(program, origin)
            if path and entry:
                held[name] = (path, entry)
    return held


def choose_sources(values: Sequence[str] | None, *, verify: bool = False) -> list[Source]:
    """Return the sources that `--binaries-from` names, in order; folders come first.

    The cache is always used: fully if `cache` is named, otherwise for programs from the named origins. If only folders are named, the
    default sources follow them.
    """
    given = [word for value in values or () for word in value.split(",") if word]
    folders = [Folder(_folder(word)) for word in given if word not in NAMES]
    names = [word for word in dict.fromkeys(given) if word in NAMES] or list(NAMES)
    origins = ORIGINS if "cache" in names else tuple(origin for origin in ORIGINS if origin in names)
    return [*folders, Cached(origins, verify), *(_source(name) for name in names if name != "cache")]


def _source(name: str) -> Source:
    if name == "system":
        return System()
    if name == "build":
        from testbed.binaries.build import BuildSource  # noqa: PLC0415 - not needed if everything is cached

        return BuildSource()
    from testbed.binaries.download import DownloadSource  # noqa: PLC0415 - as above

    return DownloadSource()


def _folder(value: str) -> Path:
    path = Path(value).expanduser()
    if path.is_dir():
        return path.absolute()
    if os.sep in value:
        raise UsageError(f"--binaries-from {value}: no such folder")
    raise UsageError(f"--binaries-from {value}: neither a source nor a folder", hint=did_you_mean(value, NAMES))


@dataclass
class Fetcher:
    """The state of one call of `ensure`: the wanted programs, those found so far, and the messages already reported."""

    lock: Lock
    wanted: Sequence[Program]
    sources: Sequence[Source]
    store: BinaryCache
    progress: Progress
    found: dict[str, Path] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)

    def use_local(self) -> None:
        """Use the programs in folders and in the cache, without taking a lock."""
        local = [source for source in self.sources if isinstance(source, Folder | Cached)]
        with self.progress.step(f"programs of Kubernetes {self.lock.kubernetes}") as step:
            self._try(local, self.wanted, step)
            step.note(f"{len(self.found)} of {len(self.wanted)} available")

    def batches(self) -> list[list[Program]]:
        """Return the missing programs by upstream, in the order of upstreams.yaml; those requested separately (kubectl) stay separate."""
        order = list(dict.fromkeys(program.upstream.name for program in self.lock.programs.values()))
        runs = itertools.groupby(self._missing(self.wanted), lambda program: program.upstream.name)
        return [
            batch
            for _, batch in sorted(((order.index(name), list(run)) for name, run in runs), key=lambda pair: pair[0])
        ]

    def fetch(self, batch: Sequence[Program]) -> None:
        """Fetch the programs of one upstream from the first sources that have them. Raise TestbedError if no source has one."""
        upstream = batch[0].upstream
        title = f"{upstream.name} {upstream.version}: {_names(batch)}"
        with self.progress.step(title) as step, self._locked(upstream, step):
            self.store.sweep()
            refusals = self._try(self.sources, batch, step)
            missing = self._missing(batch)
            if missing:
                raise _not_found(missing, refusals)
            step.note("")

    def _try(self, sources: Sequence[Source], programs: Sequence[Program], step: Step) -> list[tuple[str, Unavailable]]:
        refusals = []
        for source in sources:
            missing = self._missing(programs)
            if not missing:
                break
            try:
                add = functools.partial(self._add_to_cache, source.name)
                source.fetch(FetchRequest(missing, self.store, step, add_to_cache=add, use_in_place=self._use))
            except Unavailable as refusal:
                refusals.append((source.name, refusal))
                if not refusal.expected:
                    self._report_once(f"{source.name}: {refusal}")
        return refusals

    def _missing(self, programs: Sequence[Program]) -> list[Program]:
        return [program for program in programs if program.name not in self.found]

    def _use(self, program: Program, path: Path, remark: str) -> None:
        self.found[program.name] = path
        if remark:
            self._report_once(f"{path} {remark}")

    def _add_to_cache(self, origin: str, program: Program, file: Path, version: str) -> None:
        path = self.store.add(program, origin, file, version=version)
        self.found[program.name] = path
        size = f"{path.stat().st_size / 1e6:.0f} MB"
        if origin == "download" and not program.pinned(self.store.arch):
            self._report_once(
                f"the checksum of {program.upstream.name} is from the same site as the file: a replaced file would not be noticed; "
                "`dra-testbed binaries pin` locks digests"
            )
        self.progress.say(f"  {program.name} {version or program.version} {_DONE[origin]}, {size}; {self._remaining()}")

    def _remaining(self) -> str:
        left = [program.name for batch in self.batches() for program in batch]
        more = f" and {len(left) - 3} more" if len(left) > 4 else ""
        return f"remaining: {', '.join(left[:3] if more else left)}{more}" if left else "none remaining"

    def _report_once(self, text: str) -> None:
        """Report a message once; sources repeat it for every upstream."""
        if text not in self.reported:
            self.reported.add(text)
            self.progress.say(f"  {text}")

    @contextmanager
    def _locked(self, upstream: Upstream, step: Step) -> Iterator[None]:
        """Hold the lock of an upstream; wait while another process has it. The kernel releases it when its process ends."""
        import filelock  # noqa: PLC0415 - not needed if everything is cached

        lock = filelock.FileLock(self.store.lock_file(f"{upstream.name}-{upstream.version}-{self.store.arch}"))
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            step.note("waiting for another process that fetches it")
            self.progress.say(f"  another process fetches {upstream.name} {upstream.version}; waiting for it")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()


def _not_found(missing: Sequence[Program], refusals: Sequence[tuple[str, Unavailable]]) -> TestbedError:
    """Return one error with the reason of every source, and all hints."""
    shown = [(name, refusal) for name, refusal in refusals if not refusal.expected] or refusals
    lines = [
        f"no source has {_names(missing)} ({missing[0].upstream.name} {missing[0].version})",
        *(f"  {name}: {refusal}" for name, refusal in shown),
    ]
    hints = dict.fromkeys(refusal.hint for _, refusal in shown if refusal.hint)
    return TestbedError("\n".join(lines), hint="; or ".join(hints) or "allow more sources with --binaries-from")


def _names(programs: Sequence[Program]) -> str:
    return ", ".join(program.name for program in programs)


@contextmanager
def _cache_errors(store: BinaryCache) -> Iterator[None]:
    try:
        yield
    except OSError as failed:
        raise TestbedError(
            f"the cache {store.root} cannot be used: {failed.strerror or failed}",
            hint="free disk space there, or set DRA_TESTBED_CACHE to a writable folder",
        ) from failed
