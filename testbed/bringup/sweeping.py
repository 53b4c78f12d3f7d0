"""Remove what killed runs left: testbeds that nobody will finish or use, and what no state folder knows of. Called by `sweep`."""

from __future__ import annotations

import contextlib
import tempfile
from collections import defaultdict
from pathlib import Path

from testbed import process
from testbed.bringup import clearing, state
from testbed.bringup.state import Record
from testbed.bringup.testbeds import remove_if_abandoned, tear_down
from testbed.errors import TestbedError
from testbed.kube import reach
from testbed.kube.client import Object
from testbed.kube.discovery import labelled
from testbed.kube.kubeconfig import access
from testbed.kube.ownership import ANYBODYS, Owner, identity_of, owner_of
from testbed.process import ProcessId
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


def sweep_cluster(kubeconfig: Path, context: str | None, progress: Progress, *, everything: bool = False) -> list[str]:
    """Remove from a cluster what testbeds made that are not in use any more (or, with `everything`, what any testbed made)."""
    with tempfile.TemporaryDirectory(prefix="dra-testbed-") as folder:
        kube, _ = reach.connect(access(kubeconfig, context), Path(folder) / "kubeconfig")
    found = labelled(kube, ANYBODYS)
    for what, kinds in (("may not be listed by this user", found.refused), ("do not answer", found.silent)):
        if kinds:
            progress.say(f"not looked at, because they {what}: {', '.join(kinds)}")
    by_testbed: dict[str, list[Object]] = defaultdict(list)
    for each in found.objects:
        by_testbed[identity_of(each)].append(each)
    removed: list[str] = []
    for identity, objects in by_testbed.items():
        owner = owner_of(objects)
        used = "" if everything else _in_use(identity, owner)
        if used:
            progress.say(f"left as it is: {len(objects)} objects of {owner or f'testbed {identity}'}: {used}")
        else:
            removed += clearing.remove(kube, objects)
    return removed


def in_use(cluster: Path) -> bool:
    """Whether a cluster's folder (STATE/NAME/cluster) belongs to a testbed that is up, or on its way with its maker alive."""
    try:
        record = state.read_at(cluster.parent)
    except TestbedError:
        return True  # a record that we cannot read is not ours to judge
    return record is not None and not record.abandoned


def _in_use(identity: str, owner: Owner | None) -> str:
    """Why objects in a cluster are not ours to remove; '' when nobody will miss them."""
    if any(_is_up(folder, identity) for folder in map(state.folder_of, state.names())):
        return "it is up"
    if owner is None:
        return "nothing says who made them; --all removes them"
    if (owner.boot, owner.pid_space) != (process.boot_id(), process.pid_space()):
        known = any(_record(folder, identity) for folder in map(state.folder_of, state.names()))
        return "" if known else "it was made elsewhere, or before this host was started anew; --all removes them"
    if ProcessId(owner.pid, owner.started).alive:
        return f"process {owner.pid} is at work"
    return "it is up" if _is_up(Path(owner.folder), identity) else ""


def _is_up(folder: Path, identity: str) -> bool:
    record = _record(folder, identity)
    return record is not None and not record.abandoned


def _record(folder: Path, identity: str) -> Record | None:
    """The record of that testbed, if the folder is its folder."""
    with contextlib.suppress(TestbedError):
        record = state.read_at(folder)
        return record if record and record.identity == identity else None
    return None
