"""Brings testbeds up, attaches to them, and removes them. If `up` fails, the logs are kept and everything else is undone."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from testbed import process
from testbed.bringup import logs, state
from testbed.bringup.resolved_config import resolve
from testbed.bringup.state import Phase, Record
from testbed.bringup.steps import Context, procedure_of
from testbed.errors import DriverFailed, TestbedError, UsageError
from testbed.interrupts import deferred_interrupts
from testbed.kube.client import Kube
from testbed.kube.ownership import Owner, new_identity
from testbed.models.config import TestbedConfig, config_from_record, config_to_record
from testbed.models.driver_file import DriverFile, load_driver_file
from testbed.progress import Progress
from testbed.providers import delete_unrecorded, provider
from testbed.providers.base import Cluster
from testbed.providers.process_marks import suite_processes
from testbed.state_files import DamagedState

CopyLogs = Callable[[Path, str], Path]  # copies logs, with the error that they belong to; returns the copy


@dataclass(frozen=True)
class Testbed:
    """A testbed that is up."""

    __test__ = False

    name: str
    folder: Path
    cluster: Cluster
    kube: Kube
    config: TestbedConfig
    driver_file: DriverFile | None
    owner: Owner
    kept_nodes: Mapping[str, Sequence[str]] = field(
        default_factory=dict
    )  # where drivers must run, from before their installation


def bring_up(
    config: TestbedConfig,
    progress: Progress,
    *,
    ephemeral: bool = False,
    evidence: CopyLogs | None = None,
    begun: Callable[[], None] = lambda: None,
) -> Testbed:
    """Bring a testbed up; return it when it is usable. On failure keep its logs, also with `evidence`, and undo everything else.

    `begun` is called when all checks have passed, before anything is created.
    """
    _remove_all_abandoned(progress)
    with state.locked(config.name):
        _refuse_or_remove(config.name, progress)
        resolved, procedure = resolve(config), procedure_of(config.provider)
        folder, record = state.cluster_folder(config.name), _record(config, ephemeral, resolved.installed)
        procedure.check(resolved, folder, progress)
        begun()
        state.write(record)
        context = Context(resolved, folder, progress, record.owner)
        with _undone_on_failure(record, progress, evidence):
            for step in procedure.steps:
                step(context)
            _link_kubeconfig(config.name, context.cluster)
            record = replace(record, phase=Phase.READY, kept_nodes=context.kept_nodes)
            state.write(record)
        shutil.rmtree(state.failed_logs(config.name), ignore_errors=True)
    kube, driver_file = context.kube, resolved.driver_file
    found = (kube, config, driver_file, record.owner, record.kept_nodes)
    return Testbed(config.name, state.folder_of(config.name), context.cluster, *found)


@contextlib.contextmanager
def temporary_cluster_folder(config: TestbedConfig, progress: Progress) -> Iterator[Path]:
    """Yield the folder for a cluster that the caller starts. It is removed at the end, or by a sweep if this process is killed."""
    with state.locked(config.name):
        record = _record(config, ephemeral=True)
        state.write(record)
        try:
            yield state.cluster_folder(config.name)
        finally:
            _undo(record, progress)


def attach(name: str) -> Testbed:
    """Return a testbed that is up. Raise UsageError if it is not."""
    record = state.require(name)
    cluster = (
        provider(record.provider).attach(name, state.cluster_folder(name)) if record.phase is Phase.READY else None
    )
    if cluster is None:
        why = state.KILLED if record.abandoned else record.phase
        raise UsageError(f"testbed {name} is not up: {why}", hint=f"dra-testbed up --name {name}")
    try:
        config = config_from_record(record.config)
    except ValueError as wrong:
        raise TestbedError(
            f"the configuration in the record of testbed {name} is not valid: {wrong}",
            hint=f"dra-testbed down --name {name}, and bring it up again",
        ) from wrong
    driver_file = load_driver_file(config.driver) if config.driver else None
    found = (Kube(cluster.kubeconfig), config, driver_file, record.owner, record.kept_nodes)
    return Testbed(name, state.folder_of(name), cluster, *found)


def keep(name: str) -> None:
    """Let a testbed that was made for a run stay after the run."""
    with state.locked(name):
        state.write(replace(state.require(name), ephemeral=False))


def tear_down(name: str, progress: Progress, *, forget: bool = False) -> bool:
    """Remove a testbed with everything in it; return False if there is none.

    With `forget`, objects in an existing cluster are not removed: the cluster may no longer exist.
    """
    with state.locked(name):
        try:
            record = state.read(name)
        except DamagedState as damage:
            _remove_damaged(name, damage, progress)
            return True
        if record is None:
            return False
        with progress.step(f"testbed {name} removed"):
            _remove(record, progress, forget=forget)
    return True


def remove_if_abandoned(name: str, progress: Progress) -> bool:
    """Remove a testbed whose maker was killed; return False if there is none, or another process is changing it."""
    with contextlib.suppress(state.TestbedLocked), state.locked(name):
        record = state.read(name)
        if record and record.abandoned:
            _remove(record, progress)
            return True
    return False


def _record(config: TestbedConfig, ephemeral: bool, drivers: tuple[str, ...] = ()) -> Record:
    """Return the record of a testbed that this process is creating, and in which it will install these drivers."""
    mine, space, content = state.this_process(), process.pid_namespace(), config_to_record(config)
    made_by = (mine.pid, mine.started, space)
    return Record(config.name, config.provider, Phase.CREATING, *made_by, ephemeral, content, new_identity(), drivers)


def _remove_all_abandoned(progress: Progress) -> None:
    for left in state.names():
        try:
            if remove_if_abandoned(left, progress):
                progress.say(f"removed abandoned testbed {left}: the process that made it was killed")
        except DamagedState as damage:
            progress.say(f"note: {damage.what}; dra-testbed sweep removes testbed {left}")
        except TestbedError as refused:  # its existing cluster may no longer answer; that must not stop a new testbed
            progress.say(f"not removed: abandoned testbed {left}: {refused.what}")


def _remove(record: Record, progress: Progress, *, forget: bool = False) -> None:
    """Remove a testbed whose name is locked. A first Ctrl-C does not stop it, because removing is what Ctrl-C asks for."""
    left = f"the rest of testbed {record.name} stays until the next `dra-testbed up` or `sweep`"
    with deferred_interrupts(progress.say, f"removing testbed {record.name}", left):
        _remove_it(record, progress, forget=forget)


def _remove_it(record: Record, progress: Progress, *, forget: bool) -> None:
    with contextlib.suppress(OSError):  # on a full disk, removing must still work
        state.write(replace(record, phase=Phase.DELETING))
    # First, because a suite that still runs would blame the driver for missing objects.
    process.kill_all(suite_processes(state.folder_of(record.name)))
    folder = state.cluster_folder(record.name)
    if not forget:
        procedure_of(record.provider).remove_objects(record, folder, progress)
    provider(record.provider).delete(record.name, folder)
    state.discard(record.name)


def _remove_damaged(name: str, damage: DamagedState, progress: Progress) -> None:
    """Remove a testbed whose name is locked and whose record is damaged: its processes are found by their marks."""
    progress.say(
        f"note: {damage.what}; the processes of testbed {name} are found by their marks. "
        "If it used an existing cluster, dra-testbed sweep --kubeconfig FILE removes its objects there"
    )
    left = f"the rest of testbed {name} stays until the next `dra-testbed down` or `sweep`"
    with progress.step(f"testbed {name} removed"), deferred_interrupts(progress.say, f"removing testbed {name}", left):
        process.kill_all(suite_processes(state.folder_of(name)))
        delete_unrecorded(name, state.cluster_folder(name))
        state.discard(name)


def _refuse_or_remove(name: str, progress: Progress) -> None:
    """Refuse a testbed that is up. Remove one that was left incomplete, or whose record is damaged."""
    try:
        record = state.read(name)
    except DamagedState as damage:
        _remove_damaged(name, damage, progress)
        return
    if record is None:
        return
    if record.phase is Phase.READY and not record.abandoned:
        raise UsageError(
            f"testbed {name} is already up",
            hint=f"dra-testbed status --name {name}, or dra-testbed down --name {name}",
        )
    with progress.step(f"incomplete testbed {name} removed"):
        _remove(record, progress)


@contextlib.contextmanager
def _undone_on_failure(record: Record, progress: Progress, evidence: CopyLogs | None = None) -> Iterator[None]:
    try:
        yield
    except BaseException as failure:
        try:
            kept = _keep_logs(record)
        finally:
            _undo(record, progress)
        if isinstance(kept, Path):
            _explain(failure, kept)
            kept = _as_evidence(kept, failure, evidence) if evidence else kept
        if isinstance(failure, TestbedError):
            failure.hint = failure.hint.replace(str(state.cluster_folder(record.name) / "logs"), str(kept))
            failure.add_note(f"  logs: {kept}")
        else:
            progress.say(f"everything was removed; logs: {kept}")
        raise


def _explain(failure: BaseException, kept: Path) -> None:
    """Add the last errors of the kubelets, which often explain why a cluster did not become ready. A log of the driver explains more."""
    explains = not isinstance(failure, DriverFailed | UsageError) and "  log of " not in str(failure)
    if isinstance(failure, TestbedError) and explains:
        for error in logs.last_errors(kept, str(failure)):
            failure.add_note(f"  last error in {error}")


def _as_evidence(kept: Path, failure: BaseException, evidence: CopyLogs) -> Path | str:
    """Copy the logs as evidence; return where they are. A failed copy must not hide the first failure."""
    error = "\n".join([str(failure) or repr(failure), *getattr(failure, "__notes__", ())])
    try:
        return evidence(kept, error)
    except OSError as lost:
        return f"{kept}, and they could not be copied into the report: {lost}"


def _undo(record: Record, progress: Progress) -> None:
    try:
        _remove(record, progress)
    except TestbedError as left:  # it must not hide the first failure
        progress.say(f"not everything could be removed: {left}")


def _keep_logs(record: Record) -> Path | str:
    """Collect the logs; return where they are, or why there are none. A second failure must not hide the first one."""
    try:
        cluster = provider(record.provider).attach(record.name, state.cluster_folder(record.name))
        return (
            state.keep_logs(record.name, lambda into: logs.collect(cluster, into))
            if cluster
            else "none were written yet"
        )
    except (OSError, TestbedError) as lost:
        return f"could not be collected: {lost}"


def _link_kubeconfig(name: str, cluster: Cluster) -> None:
    link = state.folder_of(name) / "kubeconfig"
    link.unlink(missing_ok=True)
    link.symlink_to(cluster.kubeconfig)
