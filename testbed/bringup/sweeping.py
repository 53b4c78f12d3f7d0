"""Remove what killed runs left: testbeds that nobody will finish or use, what tests left on the others, and what no state folder knows of.

Called by `sweep`.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from pathlib import Path

from testbed import process
from testbed.bringup import removal, sessions, state
from testbed.bringup.state import Phase, Record
from testbed.bringup.testbeds import attach, remove_if_abandoned, tear_down
from testbed.errors import TestbedError
from testbed.kube import connection
from testbed.kube.client import Object
from testbed.kube.discovery import find_labelled
from testbed.kube.kubeconfig import load_access
from testbed.kube.ownership import ANY_TESTBED, Owner, identity_of, owner_of
from testbed.process import ProcessId
from testbed.progress import Progress
from testbed.providers import PROVIDERS, provider


def sweep(progress: Progress, *, everything: bool = False) -> list[str]:
    """Remove every abandoned testbed (or, with `everything`, all), and what killed tests left on the others; returns what was removed.

    What is locked or unreadable is left.
    """
    removed = []
    for name in state.names():
        try:
            if tear_down(name, progress) if everything else remove_if_abandoned(name, progress):
                removed.append(f"testbed {name}")
            else:
                removed += _left_by_sessions(name)
        except TestbedError as refused:
            progress.say(f"left as it is: testbed {name}: {refused}")
    state.discard_partial_folders()
    state.discard_stale_locks()
    for name in PROVIDERS:
        try:
            removed += provider(name).sweep(in_use)
        except TestbedError as lost:  # what has been removed, and the other providers, are not to be lost with it
            progress.say(f"left as it is: what provider {name} may have left: {lost}")
    return removed


def sweep_cluster(kubeconfig: Path, context: str | None, progress: Progress, *, everything: bool = False) -> list[str]:
    """Remove from a cluster what testbeds made that are not in use any more (or, with `everything`, what any testbed made)."""
    kube, _ = connection.connect(load_access(kubeconfig, context))
    found = find_labelled(kube, ANY_TESTBED)
    refused = [each.plural for each in found.refused]
    for what, kinds in (("may not be listed by this user", refused), ("do not answer", found.silent)):
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
            # First, because afterwards no object says any more that this testbed was here.
            removal.release(kube, owner or Owner("", identity))
            removed += removal.remove(kube, objects)
    return removed


def _left_by_sessions(name: str) -> list[str]:
    """What killed sessions of tests left on a testbed that is up."""
    record = state.read(name)
    if record is None or record.phase is not Phase.READY or not sessions.killed_sessions(state.folder_of(name)):
        return []
    return [
        f"{left} on testbed {name}, whose test was killed" for left in sessions.clean_up_killed_sessions(attach(name))
    ]


def in_use(cluster: Path) -> bool:
    """Whether a cluster's folder (STATE/NAME/cluster) belongs to a testbed that is up, or on its way with its maker alive."""
    try:
        record = state.read_at(cluster.parent)
    except TestbedError:
        return True  # a record that we cannot read is not ours to judge
    return record is not None and not record.abandoned


def _in_use(identity: str, owner: Owner | None) -> str:
    """Why objects in a cluster are not ours to remove; '' when nobody will miss them."""
    records = [found for name in state.names() if (found := _record(name)) and found.identity == identity]
    if not all(record.abandoned for record in records):
        return "it is up"
    if owner is None:
        return "nothing says who made them; --all removes them"
    if (owner.boot, owner.pid_space) != (process.boot_id(), process.pid_namespace()):
        return "" if records else "it was made elsewhere, or before this host was started anew; --all removes them"
    if ProcessId(owner.pid, owner.started).alive:
        return f"process {owner.pid} is at work"
    try:
        record = state.read_at(Path(owner.folder))
    except TestbedError:  # another user's, or of another version: not ours to judge
        return f"its record in {owner.folder} cannot be read"
    return "it is up" if record and record.identity == identity and not record.abandoned else ""


def _record(name: str) -> Record | None:
    """A record of this state folder. Of one that cannot be read only the objects themselves say that they belong to it."""
    with contextlib.suppress(TestbedError):
        return state.read(name)
    return None
