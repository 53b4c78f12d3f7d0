"""Builds programs from Go modules whose sources are all pinned by a committed go.sum. A source for fetch.py.

One run of the compiler per module: it keeps all cores busy, and what programs share is compiled once. Each
program is handed over as soon as it is linked, so that whoever is killed loses little; what was compiled stays in Go's cache.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from testbed import process
from testbed.binaries.cache import BinaryCache
from testbed.binaries.lock import Program, Upstream
from testbed.binaries.sources import FetchRequest, Unavailable
from testbed.binaries.toolchain import Go, find_go
from testbed.errors import CommandFailed


class BuildSource:
    """Compiles what is asked, in the order in which it is asked."""

    word = "build"

    def supply(self, order: FetchRequest) -> None:
        """Build all programs; they come from one upstream, so from one module."""
        upstream = order.programs[0].upstream
        _require_c_toolchain(upstream)
        go = find_go(upstream.module_folder, order.store, order.step)
        with order.store.scratch() as scratch:
            module, made, work = scratch / "module", scratch / "made", scratch / "work"
            shutil.copytree(upstream.module_folder, module)
            made.mkdir()
            work.mkdir()
            with _collecting(order, made):
                _compile(go, order, module, made, work)


def _compile(go: Go, order: FetchRequest, module: Path, made: Path, work: Path) -> None:
    upstream, packages = order.programs[0].upstream, [program.package for program in order.programs]
    order.step.note(f"Go {'.'.join(map(str, go.version))}: looking at the sources")
    compiled = 0
    try:
        with process.stream(
            [go.path, "build", "-v", *_flags(order.programs[0], order.store), "-o", f"{made}/", *packages],
            env=_environment(upstream, order.store, work), cwd=module,
        ) as lines:  # fmt: skip
            for line in lines:
                compiled += not line.startswith("go: ")
                order.step.note(
                    line.removeprefix("go: ")
                    if line.startswith("go: ")
                    else f"compiling, {compiled} packages so far: {line}"
                )
    except CommandFailed as failed:
        raise Unavailable(_why(failed.output), cure=_cure(failed.output)) from failed
    order.step.note("linking")


@contextmanager
def _collecting(order: FetchRequest, made: Path) -> Iterator[None]:
    """Hand over each program when it appears.

    The go command renames what it has linked into `made`, on one file system: what is there is whole.
    """
    left = list(order.programs)
    ended = threading.Event()
    failures: list[BaseException] = []

    def look() -> None:
        for program in list(left):
            file = made / executable_name(program.package)
            if file.exists():
                left.remove(program)
                order.keep(program, file, "")

    def watch() -> None:
        try:
            while not ended.wait(0.5):
                look()
        except BaseException as failed:  # noqa: BLE001 - it is raised again where the build was asked for
            failures.append(failed)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    if failures:
        raise failures[0]
    look()


def executable_name(package: str) -> str:
    """What the go command calls the executable of a package: its last word that is not a version."""
    words = package.split("/")
    return words[-2] if re.fullmatch(r"v\d+", words[-1]) else words[-1]


def _flags(program: Program, store: BinaryCache) -> list[str]:
    build = program.upstream.build
    ldflags = " ".join(program.fill(flag, store.arch) for flag in build.ldflags)
    tags = ["-tags", " ".join(build.tags)] if build.tags else []
    return ["-mod=readonly", "-trimpath", "-buildvcs=false", *tags, "-ldflags", ldflags]


def _environment(upstream: Upstream, store: BinaryCache, work: Path) -> dict[str, str]:
    """The user's environment (proxies, Go's caches), without what would change the outcome."""
    own = {
        "CGO_ENABLED": str(int(upstream.build.cgo)), "GOOS": "linux", "GOARCH": store.arch,
        "GOTMPDIR": str(work), "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "", "GOEXPERIMENT": "", "GO111MODULE": "on",
    }  # fmt: skip
    return {"HOME": str(Path.home()), **os.environ, **own}


def _require_c_toolchain(upstream: Upstream) -> None:
    if not upstream.build.cgo:
        return
    missing = [] if shutil.which(os.environ.get("CC", "gcc")) else ["gcc"]
    packages = upstream.build.libraries.values()
    if not shutil.which("pkg-config"):
        missing += ["pkg-config", *packages]
    else:
        missing += [
            package
            for library, package in upstream.build.libraries.items()
            if not process.run(["pkg-config", "--exists", library], check=False).ok
        ]
    if missing:
        raise Unavailable(
            f"{upstream.name} needs a C compiler and libraries, missing: {', '.join(missing)}",
            cure=_apt(missing),
        )


def _apt(packages: Sequence[str]) -> str:
    return f"apt install {' '.join(packages)}"


_NO_PROXY = ("dial tcp", "no such host", "connection refused", "i/o timeout", "403 Forbidden", "proxyconnect")


def _why(output: str) -> str:
    """The line that says what went wrong, among the packages and downloads that the go command tells."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("go: downloading")]
    telling = [
        line for line in lines if any(sign in line for sign in (*_NO_PROXY, "error", "cannot", "not found", ": "))
    ]
    return (telling or lines or ["the go command failed and said nothing"])[0][:400]


def _cure(output: str) -> str:
    if "no space left" in output:
        return "make room on the disk, or set DRA_TESTBED_CACHE, GOCACHE and TMPDIR to a place that has it"
    if any(sign in output for sign in _NO_PROXY):
        return "let the go command reach a module proxy (GOPROXY), or say --binaries-from FOLDER"
    return ""
