"""Builds programs from Go modules, with sources pinned by a committed go.sum. A source for `fetch`.

The go command runs once per module, so that all cores are busy and shared packages are compiled once. Each program is cached as soon as it
is linked, so that a killed build loses little; compiled packages stay in Go's own cache.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed import process
from testbed.binaries.cache import BinaryCache
from testbed.binaries.lock import Program, Upstream
from testbed.binaries.sources import FetchRequest, Unavailable
from testbed.binaries.toolchain import Go, find_go
from testbed.errors import CommandFailed


class BuildSource:
    """Compiles the requested programs, in their order."""

    name = "build"

    def fetch(self, request: FetchRequest) -> None:
        """Build the requested programs, which are of one upstream and so of one module."""
        upstream = request.programs[0].upstream
        _require_c_toolchain(upstream)
        go = find_go(upstream.module_folder, request.store, request.step)
        with request.store.scratch() as scratch:
            module, output, work = scratch / "module", scratch / "output", scratch / "work"
            shutil.copytree(upstream.module_folder, module)
            output.mkdir()
            work.mkdir()
            with _collecting(request, output):
                _compile(go, request, module, output, work)


def _compile(go: Go, request: FetchRequest, module: Path, output: Path, work: Path) -> None:
    upstream, packages = request.programs[0].upstream, [program.package for program in request.programs]
    request.step.note(f"Go {'.'.join(map(str, go.version))}: resolving the sources")
    compiled = 0
    try:
        with process.stream(
            [go.path, "build", "-v", *_flags(request.programs[0], request.store), "-o", f"{output}/", *packages],
            env=_environment(upstream, request.store, work), cwd=module,
        ) as lines:  # fmt: skip
            for line in lines:
                compiled += not line.startswith("go: ")
                request.step.note(
                    line.removeprefix("go: ")
                    if line.startswith("go: ")
                    else f"compiling, {compiled} packages so far: {line}"
                )
    except CommandFailed as failed:
        raise Unavailable(_reason(failed.output), hint=_hint(failed.output)) from failed
    request.step.note("linking")


@contextmanager
def _collecting(request: FetchRequest, output: Path) -> Iterator[None]:
    """Cache each program when it appears in `output`. Programs there are complete: the go command renames them into it."""
    left = list(request.programs)
    ended = threading.Event()
    failures: list[BaseException] = []

    def collect() -> None:
        for program in list(left):
            file = output / executable_name(program.package)
            if file.exists():
                left.remove(program)
                request.add_to_cache(program, file, "")

    def watch() -> None:
        try:
            while not ended.wait(0.5):
                collect()
        except BaseException as failed:  # noqa: BLE001 - raised again by the calling thread
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
    collect()


def executable_name(package: str) -> str:
    """Return the name that the go command gives to a package's executable: its last path element that is not a version."""
    elements = package.split("/")
    return elements[-2] if re.fullmatch(r"v\d+", elements[-1]) else elements[-1]


def _flags(program: Program, store: BinaryCache) -> list[str]:
    build = program.upstream.build
    ldflags = " ".join(program.expand(flag, store.arch) for flag in build.ldflags)
    tags = ["-tags", " ".join(build.tags)] if build.tags else []
    return ["-mod=readonly", "-trimpath", "-buildvcs=false", *tags, "-ldflags", ldflags]


def _environment(upstream: Upstream, store: BinaryCache, work: Path) -> dict[str, str]:
    """Return the user's environment (proxies, Go's caches) with fixed values for what would change the result."""
    fixed = {
        "CGO_ENABLED": str(int(upstream.build.cgo)), "GOOS": "linux", "GOARCH": store.arch,
        "GOTMPDIR": str(work), "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "", "GOEXPERIMENT": "", "GO111MODULE": "on",
    }  # fmt: skip
    return {"HOME": str(Path.home()), **os.environ, **fixed}


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
            f"{upstream.name} needs a C compiler and libraries; missing: {', '.join(missing)}",
            hint=f"apt install {' '.join(missing)}",
        )


_NETWORK_ERRORS = ("dial tcp", "no such host", "connection refused", "i/o timeout", "403 Forbidden", "proxyconnect")


def _reason(output: str) -> str:
    """Return the first line of the go command's output that looks like an error."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("go: downloading")]
    signs = (*_NETWORK_ERRORS, "error", "cannot", "not found", ": ")
    errors = [line for line in lines if any(sign in line for sign in signs)]
    return (errors or lines or ["the go command failed without output"])[0][:400]


def _hint(output: str) -> str:
    if "no space left" in output:
        return "free disk space, or move DRA_TESTBED_CACHE, GOCACHE and TMPDIR to another disk"
    if any(sign in output for sign in _NETWORK_ERRORS):
        return "let the go command reach a module proxy (GOPROXY), or use --binaries-from FOLDER"
    return ""
