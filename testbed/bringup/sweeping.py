"""Remove what killed runs left: testbeds that nobody will finish or use, and what no state folder knows of. Called by `sweep`."""

from __future__ import annotations

from pathlib import Path

from testbed.bringup import state
from testbed.bringup.testbeds import remove_if_abandoned, tear_down
from testbed.errors import TestbedError
from testbed.progress import Progress
from testbed.providers import PROVIDERS, provider


def sweep(progress: Progress, *, everything: bool = False) -> list[str]:
    """Remove every abandoned testbed (or, with `everything`, all); returns what was removed. What is locked or unreadable is left."""
    removed = []
    for name in state.names():
        try:
            if tear_down(name, progress) if everything else remove_if_abandoned(name):
                removed.append(f"testbed {name}")
        except TestbedError as refused:
            progress.say(f"left as it is: testbed {name}: {refused}")
    state.discard_remains()
    for name in PROVIDERS:
        removed += provider(name).sweep(in_use)
    return removed


def in_use(cluster: Path) -> bool:
    """Whether a cluster's folder (STATE/NAME/cluster) belongs to a testbed that is up, or on its way with its maker alive."""
    try:
        record = state.read_at(cluster.parent)
    except TestbedError:
        return True  # a record that we cannot read is not ours to judge
    return record is not None and not record.abandoned
