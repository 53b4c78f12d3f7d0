"""Providers make or find clusters, and act on them. They know nothing of DRA drivers or pytest.

A new provider needs a module that implements the protocols of `base`, one line in PROVIDERS, and its name where users give it (see
CONTRIBUTING.md).
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import cast

from testbed.errors import UsageError, did_you_mean
from testbed.providers.base import Provider

# Name to module and class; a module is imported when its provider is first used.
PROVIDERS = {
    "local": ("testbed.providers.local", "LocalProvider"),
    "kind": ("testbed.providers.kind", "KindProvider"),
    "existing": ("testbed.providers.existing", "ExistingProvider"),
}


def provider(name: str) -> Provider:
    """Return the provider of that name. Raise UsageError if there is none."""
    try:
        module, cls = PROVIDERS[name]
    except KeyError as unknown:
        raise UsageError(f"there is no provider {name}", hint=did_you_mean(name, PROVIDERS)) from unknown
    return cast("Provider", getattr(importlib.import_module(module), cls)())


def delete_unrecorded(name: str, state: Path) -> None:
    """Remove the cluster in this folder if the testbed's record no longer says which provider made it.

    Kill the processes with the folder's mark, and remove its links, cgroups, containers and files. Objects in an existing cluster stay.
    """
    if (state / "kind.json").exists():
        provider("kind").delete(name, state)
    provider("local").delete(name, state)
