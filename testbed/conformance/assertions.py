"""Refuse to judge with a Python that ignores assertions. For the plugin and `runs`."""

from __future__ import annotations

from testbed.errors import UsageError


def require_assertions() -> None:
    """Raise UsageError if this Python ignores assertions: every test would pass."""
    if not __debug__:
        raise UsageError(
            "this Python ignores assertions (python -O or PYTHONOPTIMIZE), so every test would pass",
            hint="run without -O, and unset PYTHONOPTIMIZE",
        )
