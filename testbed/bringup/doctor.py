"""What this host lacks, gathered from every room that needs something of it."""

from __future__ import annotations

import shutil

from testbed import folders
from testbed.binaries import minors
from testbed.errors import TestbedError
from testbed.providers import provider
from testbed.providers.base import ClusterSpec, Problem

_NEEDED_GIB = 6  # sources and compiled packages of one Kubernetes minor, once


def examine(provider_name: str) -> list[Problem]:
    """All findings about what that provider needs, the fatal ones first."""
    found = [*_of_provider(provider_name), *_tools(), *_space()]
    return sorted(found, key=lambda problem: not problem.fatal)


def _of_provider(name: str) -> list[Problem]:
    chosen = provider(name)
    try:
        return chosen.preflight(ClusterSpec(kubernetes=minors()[0]))
    except TestbedError as refused:  # a cluster of somebody else that cannot be used as it is
        return [Problem(refused.what, refused.hint or "see above")]


def _tools() -> list[Problem]:
    """What the build needs where downloads are out of reach."""
    if shutil.which("go") or shutil.which("pip"):
        return []
    return [Problem("neither Go nor pip: programs can only be downloaded", "install Go >= 1.26", fatal=False)]


def _space() -> list[Problem]:
    free = shutil.disk_usage(folders.cache()).free / 2**30
    if free >= _NEEDED_GIB:
        return []
    cure = f"free {_NEEDED_GIB} GiB, or set DRA_TESTBED_CACHE to a larger disk"
    return [
        Problem(f"{free:.1f} GiB free for the cache; building Kubernetes takes about {_NEEDED_GIB}", cure, fatal=False)
    ]
