"""What this host lacks for a testbed, with the cures. Called by `doctor`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from testbed import folders
from testbed.bringup.resolved_config import resolve
from testbed.bringup.steps import procedure_of
from testbed.errors import TestbedError
from testbed.models.config import NO_DRIVER, effective
from testbed.providers.base import HostProblem

_NEEDED_GIB = 6  # sources and compiled packages of one Kubernetes minor, once


def examine(provider_name: str) -> list[HostProblem]:
    """Return everything that is missing for a testbed of that provider, fatal problems first."""
    found = [*_of_provider(provider_name), *_tools(), *_space()]
    return sorted(found, key=lambda problem: not problem.fatal)


def _of_provider(name: str) -> Sequence[HostProblem]:
    procedure = procedure_of(name)
    resolved = resolve(effective(None, {"provider": name, "driver": NO_DRIVER}))
    try:
        return procedure.problems(resolved)
    except TestbedError as refused:  # an existing cluster that cannot be used
        return [HostProblem(refused.what, refused.hint or "see above")]


def _tools() -> list[HostProblem]:
    """Return a problem if programs could not be built where they cannot be downloaded."""
    if shutil.which("go") or shutil.which("pip"):
        return []
    return [HostProblem("neither Go nor pip: programs can only be downloaded", "install Go >= 1.26", fatal=False)]


def _space() -> list[HostProblem]:
    free = shutil.disk_usage(folders.cache()).free / 2**30
    if free >= _NEEDED_GIB:
        return []
    cure = f"free {_NEEDED_GIB} GiB, or set DRA_TESTBED_CACHE to a larger disk"
    return [
        HostProblem(
            f"{free:.1f} GiB free for the cache; building Kubernetes takes about {_NEEDED_GIB}", cure, fatal=False
        )
    ]
