"""Where a program may come from: what every source is, and the three small ones. fetch.py asks them in order.

The large ones are download.py and build.py.
"""

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
    """A source cannot give a program: why, and what would change that."""

    def __init__(self, why: str, *, cure: str = "", expected: bool = False) -> None:
        super().__init__(why)
        self.cure = cure
        self.expected = expected  # nothing that anybody has to hear about


@dataclass(frozen=True)
class FetchRequest:
    """What is asked of a source; it answers by `keep` (this file goes into the cache) or `use` (it stays there)."""

    programs: Sequence[Program]
    store: BinaryCache
    step: Step
    keep: Callable[[Program, Path, str], None]
    use: Callable[[Program, Path, str], None]


class Source(Protocol):
    """Gives programs, each as soon as it has it; raises Unavailable when it cannot give the rest."""

    @property
    def word(self) -> str:
        """What the user calls it."""

    def supply(self, order: FetchRequest) -> None:
        """Hand over what it has of the order."""


@dataclass(frozen=True)
class Folder:
    """Programs that the user brought: used where they lie, and believed; only another minor is refused."""

    path: Path

    @property
    def word(self) -> str:
        """The folder itself."""
        return str(self.path)

    def supply(self, order: FetchRequest) -> None:
        """Use what is there, in the folder or in a `bin` or `cni` folder in it."""
        missing = []
        for program in order.programs:
            candidates = [self.path / sub / program.file for sub in ("", "bin", "cni")]
            file = next((path for path in candidates if path.is_file()), None)
            if file:
                order.use(program, file.absolute(), self._check(program, file))
            else:
                missing.append(program.name)
        if missing:
            raise Unavailable(f"not in the folder: {', '.join(missing)}", cure=f"put them into {self.path}")

    def _check(self, program: Program, file: Path) -> str:
        if not os.access(file, os.X_OK):
            raise UsageError(f"{file} is not executable", hint=f"chmod +x {file}")
        said = reported_version(program, file)
        if said is None:
            raise UsageError(
                f"{file} does not run here, or is not {program.name}", hint="give a program for this machine"
            )
        if program.upstream.name == "kubernetes" and f"v{program.upstream.minor}." not in said:
            raise UsageError(
                f"{file} says {said.splitlines()[0]!r}, but Kubernetes {program.upstream.minor} is wanted",
                hint="say the --kubernetes that the folder is made of",
            )
        return "" if program.version in said else f"says {said.splitlines()[0]!r} where {program.version} is locked"


@dataclass(frozen=True)
class Cached:
    """What is in the cache already, from the origins that the user allows."""

    origins: Sequence[str] = ORIGINS
    thorough: bool = False
    word: str = "cache"

    def supply(self, order: FetchRequest) -> None:
        """Use what is whole; what is damaged counts as missing, and that is said."""
        troubles, missing = [], False
        for program in order.programs:
            file, trouble = order.store.look(program, self.origins, thorough=self.thorough)
            if file:
                order.use(program, file, "")
            else:
                missing = True
            if trouble:
                troubles.append(f"damaged: {trouble}")
        if missing:
            raise Unavailable("; ".join(troubles) or "not there yet", expected=not troubles)


@dataclass(frozen=True)
class System:
    """The distribution's package, unpacked and not installed; only for upstreams whose recipe names one."""

    word: str = "system"

    def supply(self, order: FetchRequest) -> None:
        """Fetch the package and take the program out of it, if it runs here."""
        for program in order.programs:
            package = program.upstream.package
            if package is None:
                raise Unavailable("no package of the distribution is known to do", expected=True)
            order.step.note(f"the distribution's package {package.name}")
            with order.store.scratch() as scratch:
                try:
                    version = debian.fetch_packages([package.name], scratch)[package.name]
                except TestbedError as failed:
                    raise Unavailable(failed.what, cure=failed.hint) from failed
                file = scratch / package.file
                if reported_version(program, file) is None:
                    raise Unavailable(f"{package.name} {version} of the distribution does not run here")
                order.keep(program, file, version)


def reported_version(program: Program, file: Path) -> str | None:
    """What a program prints when it is asked for its version; None when it does not run."""
    try:
        done = process.run([file, *program.says], check=False, timeout=20)
    except (CommandFailed, OSError):
        return None
    return (done.stdout + done.stderr).strip() or None if done.ok else None
