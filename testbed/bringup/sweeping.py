"""Removes what killed runs left: abandoned testbeds, objects of killed sessions, and processes and objects without a testbed.

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
from testbed.drivers.changed_daemonsets import undo_all
from testbed.errors import TestbedError
from testbed.kube import connection
from testbed.kube.client import Object
from testbed.kube.discovery import find_labelled
from testbed.kube.kubeconfig import load_access
from testbed.kube.ownership import ANY_TESTBED, Owner, identity_of, owner_of
from testbed.process import ProcessId
from testbed.progress import Progress
from testbed.providers import PROVIDERS, provider
from testbed.providers.process_marks import suite_processes
from testbed.state_files import DamagedState


def sweep(progress: Progress, *, everything: bool = False) -> list[str]:
    """Remove all abandoned testbeds (with `everything`, all testbeds) and the objects of killed sessions on the others.

    Return descriptions of what was removed. Skip testbeds that are locked or unreadable.
    """
    removed = []
    for name in state.names():
        try:
            if tear_down(name, progress) if everything else _remove_if_unused(name, progress):
                removed.append(f"testbed {name}")
            else:
                removed += _of_killed_sessions(name)
        except TestbedError as refused:
            progress.say(f"not removed: testbed {name}: {refused}")
    state.discard_partial_folders()
    state.discard_stale_locks()
    for name in PROVIDERS:
        try:
            removed += provider(name).sweep(in_use)
        except TestbedError as lost:  # the other providers, and the report of what was removed, must not be lost
            progress.say(f"not swept: provider {name}: {lost}")
    return removed


def sweep_cluster(kubeconfig: Path, context: str | None, progress: Progress, *, everything: bool = False) -> list[str]:
    """Remove from a cluster the objects of testbeds that are not in use (with `everything`, of all testbeds)."""
    kube, _ = connection.connect(load_access(kubeconfig, context))
    found = find_labelled(kube, ANY_TESTBED)
    refused = [each.plural for each in found.forbidden]
    for why, kinds in (("this user may not list them", refused), ("their API groups do not answer", found.unavailable)):
        if kinds:
            progress.say(f"not listed, because {why}: {', '.join(kinds)}")
    by_testbed: dict[str, list[Object]] = defaultdict(list)
    for each in found.objects:
        by_testbed[identity_of(each)].append(each)
    removed: list[str] = []
    for identity, objects in by_testbed.items():
        owners = _deciding_owners(objects)
        owner = owners[0] if owners else None
        why_kept = "" if everything else _why_kept(identity, owners)
        if why_kept:
            progress.say(f"not removed: {len(objects)} objects of {owner or f'testbed {identity}'}: {why_kept}")
        else:
            # First, because the labelled objects are the only trace of this testbed in the cluster.
            undo_all(kube, owner or Owner("", identity))
            removal.release(kube, owner or Owner("", identity))
            drivers = {driver for record in _records_of(identity) for driver in record.drivers}
            removed += removal.remove(kube, objects, drivers, progress)
    return removed


def _remove_if_unused(name: str, progress: Progress) -> bool:
    """Remove an abandoned testbed, or one with a damaged record that no test uses; return whether it was removed."""
    try:
        return remove_if_abandoned(name, progress)
    except DamagedState:
        if suite_processes(state.folder_of(name)):
            raise
        return tear_down(name, progress)


def _of_killed_sessions(name: str) -> list[str]:
    """Remove the objects of killed sessions on a testbed that is up; return descriptions of them."""
    record = state.read(name)
    if record is None or record.phase is not Phase.READY or not sessions.killed_sessions(state.folder_of(name)):
        return []
    return [f"{each} of a killed test on testbed {name}" for each in sessions.clean_up_killed_sessions(attach(name))]


def in_use(cluster: Path) -> bool:
    """Return True if a cluster's folder (STATE/NAME/cluster) belongs to a testbed that is not abandoned."""
    try:
        record = state.read_at(cluster.parent)
    except TestbedError:
        return True  # unknown, so it must not be removed
    return record is not None and not record.abandoned


def _deciding_owners(objects: list[Object]) -> list[Owner]:
    """Return every owner that the cluster-wide objects name; without any, those that the other objects name.

    A user with one namespace can name any owner there, which must not decide about cluster-wide objects.
    """
    cluster_wide = [each for each in objects if not each["metadata"].get("namespace")]
    found = [owner for each in cluster_wide or objects if (owner := owner_of([each]))]
    return list(dict.fromkeys(found))


def _why_kept(identity: str, owners: list[Owner]) -> str:
    """Return why a testbed's objects in a cluster must not be removed; '' if the testbed is abandoned."""
    records = _records_of(identity)
    if not all(record.abandoned for record in records):
        return "it is up"
    if not owners:
        return "they do not name their testbed; --all removes them"
    return next(filter(None, (_why_in_use(identity, owner, records) for owner in owners)), "")


def _records_of(identity: str) -> list[Record]:
    """Return the records of this state folder with that identity."""
    return [found for name in state.names() if (found := _record(name)) and found.identity == identity]


def _why_in_use(identity: str, owner: Owner, records: list[Record]) -> str:
    if (owner.boot, owner.pid_space) != (process.boot_id(), process.pid_namespace()):
        return "" if records else "it was made on another host, or before this host's last boot; --all removes them"
    if ProcessId(owner.pid, owner.started).alive:
        return f"process {owner.pid} still uses it"
    try:
        record = state.read_at(Path(owner.folder))
    except TestbedError:  # it belongs to another user, or was written by another version
        return f"its record in {owner.folder} cannot be read"
    return "it is up" if record and record.identity == identity and not record.abandoned else ""


def _record(name: str) -> Record | None:
    """Return a record of this state folder; None if there is none, or it cannot be read."""
    with contextlib.suppress(TestbedError):
        return state.read(name)
    return None
