"""Keeps the ResourceSlices from before a run for all its processes: later, a driver may have removed devices in use from them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from testbed.kube.client import Object

_FILE = ".slices.json"


def keep(folder: Path, slices: Sequence[Object]) -> None:
    """Write slices to a folder."""
    (folder / _FILE).write_text(json.dumps(slices))


def load(folder: Path) -> list[Object]:
    """Return the slices that were kept in a folder, or []."""
    try:
        return list(json.loads((folder / _FILE).read_text()))
    except FileNotFoundError:
        return []


def discard(folder: Path) -> None:
    """Remove the file."""
    (folder / _FILE).unlink(missing_ok=True)
