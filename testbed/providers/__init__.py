"""Clusters: who makes or finds them, and what can be done to them. Providers know nothing of DRA drivers or pytest.

A new provider is one module that fulfils the protocols of `base`, one line in PROVIDERS, and its name where users say it (CONTRIBUTING.md).
"""

from __future__ import annotations

import importlib
from typing import cast

from testbed.errors import UsageError, did_you_mean
from testbed.providers.base import Provider

# name -> module and class; imported only when it is asked for
PROVIDERS = {
    "local": ("testbed.providers.local", "LocalProvider"),
    "kind": ("testbed.providers.kind", "KindProvider"),
    "existing": ("testbed.providers.existing", "ExistingProvider"),
}


def provider(name: str) -> Provider:
    """The provider of that name."""
    try:
        module, cls = PROVIDERS[name]
    except KeyError as unknown:
        raise UsageError(f"there is no provider {name}", hint=did_you_mean(name, PROVIDERS)) from unknown
    return cast("Provider", getattr(importlib.import_module(module), cls)())
