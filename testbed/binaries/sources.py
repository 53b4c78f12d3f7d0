"""Interface of the sources of programs, and the small ones. `fetch` tries sources in order; `download` and `build` are the large ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from testbed import process
from testbed.binaries import debian
from testbed.binaries.cache import ORIGINS, BinaryCache
from testbed.binaries.lock import Program
from testbed.errors import CommandFailed, TestbedError, UsageError
from testbed.progress import Step


class Unavailable(Exception):
    """A source cannot provide a program. The hint says what to do; an `expected` one is not worth a message."""

    def __init__(self, reason: str, *, hint: str = "", expected: bool = False) -> None:
        super().__init__(reason)
        self.hint = hint
        self.expected = expected


@dataclass(frozen=True)
class FetchRequest:
    """The programs that a source should provide, with a callback for each way of providing one.

    `add_to_cache` moves a file into the cache; `use_in_place` uses the file where it is.
    """

    programs: Sequence[Program]
    store: BinaryCache
    step: Step
    add_to_cache: Callable[[Program, Path, str], None]
    use_in_place: Callable[[Program, Path, str], None]


class Source(Protocol):
    """A source of programs. It provides each program as soon as possible, and raises Unavailable for the rest."""

    @property
    def name(self) -> str:
        """Return the name that users write in --binaries-from."""

    def fetch(self, request: FetchRequest) -> None:
        """Provide the requested programs. Raise Unavailable if some are missing."""


@dataclass(frozen=True)
class Folder:
    """Programs in a folder of the user, used in place. Their version may differ, but for Kubernetes only in the patch."""

    path: Path

    @property
    def name(self) -> str:
        """Return the path of the folder."""
        return str(self.path)

    def fetch(self, request: FetchRequest) -> None:
        """Use the programs in the folder, or in its subfolders `bin` and `cni`."""
        missing = []
        for program in request.programs:
            candidates = [self.path / sub / program.file for sub in ("", "bin", "cni")]
            file = next((path for path in candidates if path.is_file()), None)
            if file:
                request.use_in_place(program, file.absolute(), self._check(program, file))
            else:
                missing.append(program.name)
        if missing:
            raise Unavailable(f"not in the folder: {', '.join(missing)}", hint=f"put them into {self.path}")

    def _check(self, program: Program, file: Path) -> str:
        """Return a remark if the version differs from the locked one. Raise UsageError if the file cannot be used."""
        if not os.access(file, os.X_OK):
            raise UsageError(f"{file} is not executable", hint=f"chmod +x {file}")
        version = reported_version(program, file)
        if version is None:
            raise UsageError(
                f"{file} does not run here, or is not {program.name}", hint="use a program for this machine"
            )
        first_line = version.splitlines()[0]
        if program.upstream.name == "kubernetes" and f"v{program.upstream.minor}." not in version:
            raise UsageError(
                f"{file} reports {first_line!r}, but Kubernetes {program.upstream.minor} is requested",
                hint="set --kubernetes to the version in the folder",
            )
        return "" if program.version in version else f"reports {first_line!r}, but {program.version} is locked"


@dataclass(frozen=True)
class Cached:
    """The programs in the cache, from the allowed origins."""

    origins: Sequence[str] = ORIGINS
    verify: bool = False
    name: str = "cache"

    def fetch(self, request: FetchRequest) -> None:
        """Use the cached programs. Damaged ones count as missing, and are reported."""
        problems, missing = [], False
        for program in request.programs:
            file, problem = request.store.find(program, self.origins, verify=self.verify)
            if file:
                request.use_in_place(program, file, "")
            else:
                missing = True
            if problem:
                problems.append(f"damaged: {problem}")
        if missing:
            raise Unavailable("; ".join(problems) or "not cached yet", expected=not problems)


@dataclass(frozen=True)
class System:
    """The distribution's packages, unpacked but not installed, for those upstreams that name one."""

    name: str = "system"

    def fetch(self, request: FetchRequest) -> None:
        """Fetch the packages and cache their programs if they run here."""
        for program in request.programs:
            package = program.upstream.package
            if package is None:
                raise Unavailable("no package of the distribution is known to work", expected=True)
            request.step.note(f"the distribution's package {package.name}")
            with request.store.scratch() as scratch:
                try:
                    version = debian.fetch_packages([package.name], scratch)[package.name]
                except TestbedError as failed:
                    raise Unavailable(failed.what, hint=failed.hint) from failed
                file = scratch / package.file
                if reported_version(program, file) is None:
                    raise Unavailable(f"{package.name} {version} of the distribution does not run here")
                request.add_to_cache(program, file, version)


def reported_version(program: Program, file: Path) -> str | None:
    """Return what a program prints as its version, or None if it does not run."""
    try:
        done = process.run([file, *program.version_args], check=False, timeout=20)
    except (CommandFailed, OSError):
        return None
    return (done.stdout + done.stderr).strip() or None if done.ok else None
