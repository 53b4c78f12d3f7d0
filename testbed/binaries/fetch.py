"""`ensure`: the programs that somebody needs, from the first source that has them. Called by bringup and the CLI.

Programs of one upstream are fetched together and under a lock, so that two processes share the work.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from testbed.binaries.cache import ORIGINS, BinaryCache, Entry
from testbed.binaries.lock import Lock, Program, Upstream
from testbed.binaries.sources import Cached, FetchRequest, Folder, Source, System, Unavailable
from testbed.errors import TestbedError, UsageError, did_you_mean
from testbed.progress import Progress, Step

WORDS = ("cache", *ORIGINS)
_DONE = {"download": "downloaded", "build": "built", "system": "from the distribution's package"}


def ensure(
    lock: Lock,
    programs: Sequence[str],
    *,
    progress: Progress,
    sources: Sequence[str] | None = None,
    cache: Path | None = None,
    thorough: bool = False,
) -> dict[str, Path]:
    """Each program's executable, an absolute path, by name.

    `sources` are words of `--binaries-from`; `cache` replaces the user's; `thorough` reads all that is cached.
    It shows steps of its own, so it is not called inside another step.
    """
    wanted = [lock.program(name) for name in dict.fromkeys(programs)]
    desk = Fetcher(lock, wanted, choose_sources(sources, thorough=thorough), BinaryCache(cache), progress)
    with _cache_errors(desk.store):
        desk.look()
        for batch in desk.batches():
            desk.obtain(batch)
    return {program.name: desk.found[program.name] for program in wanted}


def inventory(lock: Lock, *, cache: Path | None = None) -> dict[str, tuple[Path, Entry] | None]:
    """For each program of the lock, what the cache holds of it."""
    store = BinaryCache(cache)
    held: dict[str, tuple[Path, Entry] | None] = dict.fromkeys(lock.programs)
    for name, program in lock.programs.items():
        for origin in reversed(ORIGINS):
            path, _ = store.look(program, [origin])
            entry = store.entry(program, origin)
            if path and entry:
                held[name] = (path, entry)
    return held


def choose_sources(words: Sequence[str] | None, *, thorough: bool = False) -> list[Source]:
    """The sources that `--binaries-from` names, in the order in which they are asked; folders come first.

    The cache is always looked into: the word `cache` allows all that it holds, another word what came from there.
    Where only folders are named, the usual sources stand behind them.
    """
    asked = [word for given in words or () for word in given.split(",") if word]
    folders = [Folder(_folder(word)) for word in asked if word not in WORDS]
    named = [word for word in dict.fromkeys(asked) if word in WORDS] or list(WORDS)
    origins = ORIGINS if "cache" in named else tuple(word for word in ORIGINS if word in named)
    return [*folders, Cached(origins, thorough), *(_source(word) for word in named if word != "cache")]


def _source(word: str) -> Source:
    if word == "system":
        return System()
    if word == "build":
        from testbed.binaries.build import BuildSource  # noqa: PLC0415 - a warm start has no use for it

        return BuildSource()
    from testbed.binaries.download import DownloadSource  # noqa: PLC0415 - as above

    return DownloadSource()


def _folder(word: str) -> Path:
    path = Path(word).expanduser()
    if path.is_dir():
        return path.absolute()
    if os.sep in word:
        raise UsageError(f"--binaries-from {word}: there is no such folder")
    raise UsageError(f"--binaries-from {word}: neither a source nor a folder", hint=did_you_mean(word, WORDS))


@dataclass
class Fetcher:
    """One call of `ensure`: what is wanted, what was found, and who refused what."""

    lock: Lock
    wanted: Sequence[Program]
    sources: Sequence[Source]
    store: BinaryCache
    progress: Progress
    found: dict[str, Path] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)

    def look(self) -> None:
        """Take what is there without any work, and without a lock."""
        quick = [source for source in self.sources if isinstance(source, Folder | Cached)]
        with self.progress.step(f"programs of Kubernetes {self.lock.kubernetes}") as step:
            self._ask(quick, self.wanted, step)
            step.note(f"{len(self.found)} of {len(self.wanted)} at hand")

    def batches(self) -> list[list[Program]]:
        """What is missing, by upstream, in the order of upstreams.yaml; what was named apart (kubectl) stays apart."""
        order = list(dict.fromkeys(program.upstream.name for program in self.lock.programs.values()))
        runs = itertools.groupby(self._missing(self.wanted), lambda program: program.upstream.name)
        return [
            batch
            for _, batch in sorted(((order.index(name), list(run)) for name, run in runs), key=lambda pair: pair[0])
        ]

    def obtain(self, batch: Sequence[Program]) -> None:
        """Get the programs of one upstream from the first sources that have them."""
        upstream = batch[0].upstream
        title = f"{upstream.name} {upstream.version}: {_names(batch)}"
        with self.progress.step(title) as step, self._turn(upstream, step):
            self.store.sweep()
            refusals = self._ask(self.sources, batch, step)
            missing = self._missing(batch)
            if missing:
                raise _not_found(missing, refusals)
            step.note("")

    def _ask(self, sources: Sequence[Source], programs: Sequence[Program], step: Step) -> list[tuple[str, Unavailable]]:
        refusals = []
        for source in sources:
            missing = self._missing(programs)
            if not missing:
                break
            try:
                source.supply(FetchRequest(missing, self.store, step, keep=self._keeper(source.word), use=self._use))
            except Unavailable as refusal:
                refusals.append((source.word, refusal))
                if not refusal.expected:
                    self._tell(f"{source.word}: {refusal}")
        return refusals

    def _missing(self, programs: Sequence[Program]) -> list[Program]:
        return [program for program in programs if program.name not in self.found]

    def _use(self, program: Program, path: Path, remark: str) -> None:
        self.found[program.name] = path
        if remark:
            self._tell(f"{path} {remark}")

    def _keeper(self, origin: str) -> Callable[[Program, Path, str], None]:
        def keep(program: Program, file: Path, version: str) -> None:
            kept = self.store.add(program, origin, file, version=version)
            self.found[program.name] = kept
            size = f"{kept.stat().st_size / 1e6:.0f} MB"
            self.progress.say(
                f"  {program.name} {version or program.version} {_DONE[origin]}, {size}; {self._to_come()}"
            )

        return keep

    def _to_come(self) -> str:
        left = [program.name for batch in self.batches() for program in batch]
        more = f" and {len(left) - 3} more" if len(left) > 4 else ""
        return f"to come: {', '.join(left[:3] if more else left)}{more}" if left else "that was the last"

    def _tell(self, text: str) -> None:
        """Say it once; the same refusal comes again with every upstream."""
        if text not in self.told:
            self.told.add(text)
            self.progress.say(f"  {text}")

    @contextmanager
    def _turn(self, upstream: Upstream, step: Step) -> Iterator[None]:
        """Wait until nobody else works on this upstream. The lock is the kernel's: it ends with its holder."""
        import filelock  # noqa: PLC0415 - costs time that a warm start has no use for

        lock = filelock.FileLock(self.store.lock_file(f"{upstream.name}-{upstream.version}-{self.store.arch}"))
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            step.note("waiting for another process that is at work on it")
            self.progress.say(f"  another process is at work on {upstream.name} {upstream.version}; waiting for it")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()


def _not_found(missing: Sequence[Program], refusals: Sequence[tuple[str, Unavailable]]) -> TestbedError:
    """The one error that lists every source with its reason, and every cure."""
    shown = [(word, why) for word, why in refusals if not why.expected] or refusals
    lines = [
        f"no source has {_names(missing)} ({missing[0].upstream.name} {missing[0].version})",
        *(f"  {word}: {why}" for word, why in shown),
    ]
    cures = dict.fromkeys(why.cure for _, why in shown if why.cure)
    return TestbedError("\n".join(lines), hint="; or ".join(cures) or "allow more sources with --binaries-from")


def _names(programs: Sequence[Program]) -> str:
    return ", ".join(program.name for program in programs)


@contextmanager
def _cache_errors(store: BinaryCache) -> Iterator[None]:
    try:
        yield
    except OSError as failed:
        raise TestbedError(
            f"the cache {store.root} cannot be used: {failed.strerror or failed}",
            hint="make room there, or set DRA_TESTBED_CACHE to a folder that can be written",
        ) from failed
