"""Finds the programs that render kustomizations and charts: on PATH, or in the cache of `dra-testbed binaries`."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from testbed import process
from testbed.binaries import ensure, inventory, lock_for, minors
from testbed.errors import CommandFailed, TestbedError, UsageError
from testbed.models.driver_file import DriverFile
from testbed.progress import Progress

KUSTOMIZE = ("kustomize", "kubectl")  # either can build a kustomization
HELM = ("helm",)
_TIMEOUT = 120  # a kustomization may fetch its bases


def fetch_missing(drivers: Iterable[DriverFile]) -> None:
    """Fetch the programs that the driver files need and that are neither on PATH nor in the cache. Not within a progress step."""
    installs = [each.install for each in drivers if each.install]
    needed = [KUSTOMIZE for each in installs if each.kustomize] + [HELM for each in installs if each.chart]
    for names in dict.fromkeys(needed):
        if _find(names) is None:
            ensure(lock_for(minors()[0]), [names[-1]], progress=Progress())


def find(names: Sequence[str]) -> Path:
    """Return the first of these programs. Raise TestbedError if there is none."""
    found = _find(names)
    if found is None:
        raise TestbedError(
            f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} neither on PATH nor in the cache",
            hint=f"dra-testbed binaries fetch {names[-1]}",
        )
    return found


def render(what: str, program: Path, *arguments: str | Path) -> str:
    """Return the YAML that a program prints. It runs once with the same arguments. Raise UsageError with its error if it fails."""
    return _render(what, program, tuple(str(each) for each in arguments))


@functools.cache
def _render(what: str, program: Path, arguments: tuple[str, ...]) -> str:
    try:
        return process.run([program, *arguments], timeout=_TIMEOUT).stdout
    except CommandFailed as failed:
        lines = [line for line in failed.output.strip().splitlines() if line.strip()]
        reason = "\n  ".join(lines[-8:]) or failed.status
        raise UsageError(f"{what} cannot be rendered: {program.name} {arguments[0]}: {reason}") from failed


def _find(names: Sequence[str]) -> Path | None:
    for name in names:
        if installed := shutil.which(name):
            return Path(installed)
    cached = inventory(lock_for(minors()[0])).get(names[-1])
    return cached[0] if cached else None
