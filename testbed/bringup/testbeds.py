"""Testbeds as a whole: bring one up, find it again, tear it down, and remove what killed ones left. Undoes what failed, evidence first."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from testbed import process
from testbed.bringup import logs, removal, state, steps
from testbed.bringup.created_kinds import making
from testbed.bringup.state import Phase, Record
from testbed.errors import ApiError, DriverFailed, TestbedError, UsageError
from testbed.interrupts import unhurried
from testbed.kube.client import Kube
from testbed.kube.ownership import Owner, new_identity
from testbed.models.config import TestbedConfig, config_from_record, config_to_record
from testbed.models.driver_file import DriverFile, load_driver_file
from testbed.progress import Progress
from testbed.providers import provider
from testbed.providers.base import Capability, Cluster, FindsClusters
from testbed.providers.process_marks import suites_on

KeepsLogs = Callable[[Path, str], Path]  # copies logs with the error that they belong to; where to


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


def bring_up(
    config: TestbedConfig,
    progress: Progress,
    *,
    ephemeral: bool = False,
    evidence: KeepsLogs | None = None,
    begun: Callable[[], None] = lambda: None,
) -> Testbed:
    """Make a testbed, usable when this returns. On failure its logs are kept, as `evidence` too, and everything else is undone.

    `begun` is called when the request was found right, before anything is made.
    """
    _remove_all_abandoned(progress)
    with state.changing(config.name):
        _refuse_or_clear(config.name, progress)
        record = _record(config, ephemeral)
        context = steps.begin(config, state.cluster_folder(config.name), progress, record.owner)
        begun()
        state.write(record)
        with _undone_on_failure(record, progress, evidence):
            for step in steps.STEPS:
                step(context)
            _link_kubeconfig(config.name, context.the_cluster)
            state.write(replace(record, phase=Phase.READY))
        shutil.rmtree(state.failed_logs(config.name), ignore_errors=True)
    return Testbed(
        config.name,
        state.folder_of(config.name),
        context.the_cluster,
        context.the_kube,
        config,
        context.driver_file,
        record.owner,
    )


@contextlib.contextmanager
def on_record(config: TestbedConfig, progress: Progress) -> Iterator[Path]:
    """The folder for a cluster that somebody starts himself: his own while he lives, and the next sweep's if he is killed."""
    with state.changing(config.name):
        record = _record(config, ephemeral=True)
        state.write(record)
        try:
            yield state.cluster_folder(config.name)
        finally:
            _undo(record, progress)


def attach(name: str) -> Testbed:
    """A testbed that is up already."""
    record = state.known(name)
    cluster = (
        provider(record.provider).attach(name, state.cluster_folder(name)) if record.phase is Phase.READY else None
    )
    if cluster is None:
        why = state.KILLED if record.abandoned else record.phase
        raise UsageError(f"testbed {name} is not up: {why}", hint=f"dra-testbed up --name {name}")
    config = config_from_record(record.config)
    driver_file = load_driver_file(config.driver) if config.driver else None
    return Testbed(name, state.folder_of(name), cluster, Kube(cluster.kubeconfig), config, driver_file, record.owner)


def keep(name: str) -> None:
    """A testbed that was made for a run stays, also when the run's process is gone."""
    with state.changing(name):
        state.write(replace(state.known(name), ephemeral=False))


def tear_down(name: str, progress: Progress, *, forget: bool = False) -> bool:
    """Remove a testbed and everything of it; False when there was none. Twice is fine.

    With `forget` nothing is looked for in a cluster that is not ours: for one that has gone for good.
    """
    with state.changing(name):
        record = state.read(name)
        if record is None:
            return False
        with progress.step(f"testbed {name} removed"):
            _remove(record, progress, forget=forget)
    return True


def remove_if_abandoned(name: str, progress: Progress) -> bool:
    """Remove a testbed that nobody will finish or use; one that somebody is changing right now is left to them."""
    with contextlib.suppress(state.Busy), state.changing(name):
        record = state.read(name)
        if record and record.abandoned:
            _remove(record, progress)
            return True
    return False


def _record(config: TestbedConfig, ephemeral: bool) -> Record:
    """A testbed that is being made, by this process."""
    mine, space, content = state.me(), process.pid_space(), config_to_record(config)
    return Record(
        config.name, config.provider, Phase.CREATING, mine.pid, mine.started, space, ephemeral, content, new_identity()
    )


def _remove_all_abandoned(progress: Progress) -> None:
    for left in state.names():
        try:
            if remove_if_abandoned(left, progress):
                progress.say(f"removed what was left of testbed {left}, whose maker was killed")
        except TestbedError as refused:  # a cluster of somebody else may have gone: that is not this testbed's trouble
            progress.say(f"left as it is: testbed {left}: {refused.what}")


def _remove(record: Record, progress: Progress, *, forget: bool = False) -> None:
    """Remove a testbed whose name is locked, in spite of a Ctrl-C: it is what Ctrl-C asked for."""
    left = f"what is left of testbed {record.name} stays until the next `dra-testbed up` or `sweep`"
    with unhurried(progress.say, f"removing testbed {record.name}", left):
        _remove_it(record, progress, forget=forget)


def _remove_it(record: Record, progress: Progress, *, forget: bool) -> None:
    with contextlib.suppress(OSError):  # a full disk must not keep anybody from making room
        state.write(replace(record, phase=Phase.DELETING))
    # Before any object goes: whoever still judges here would blame the driver for it.
    process.kill_all(suites_on(state.folder_of(record.name)))
    its_provider, folder = provider(record.provider), state.cluster_folder(record.name)
    if isinstance(its_provider, FindsClusters) and not forget:
        cluster = its_provider.attach(record.name, folder)
        if cluster and Capability.MAKE_OBJECTS in cluster.capabilities:
            _clear(record, cluster, its_provider, progress)
    its_provider.delete(record.name, folder)
    state.discard(record.name)


def _clear(record: Record, cluster: Cluster, its_provider: FindsClusters, progress: Progress) -> None:
    """Take out of somebody else's cluster what was made in it, also by an `up` that did not come to its end."""
    made = making(its_provider, record.config)
    try:
        removal.clear(Kube(cluster.kubeconfig), record.owner, made, progress)
    except ApiError as lost:
        raise TestbedError(
            f"what testbed {record.name} made in its cluster could not be removed: {lost}",
            hint=f"when the cluster has gone for good: dra-testbed down --name {record.name} --forget",
        ) from lost


def _refuse_or_clear(name: str, progress: Progress) -> None:
    """A testbed that runs is not made again; what is left of one whose maker died is removed first."""
    record = state.read(name)
    if record is None:
        return
    if record.phase is Phase.READY and not record.abandoned:
        raise UsageError(
            f"testbed {name} is up already",
            hint=f"dra-testbed status --name {name}, or dra-testbed down --name {name}",
        )
    with progress.step(f"what is left of an interrupted testbed {name} removed"):
        _remove(record, progress)


@contextlib.contextmanager
def _undone_on_failure(record: Record, progress: Progress, evidence: KeepsLogs | None = None) -> Iterator[None]:
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
    """A cluster that did not come is often explained by its kubelets."""
    if isinstance(failure, TestbedError) and not isinstance(failure, DriverFailed | UsageError):
        for error in logs.last_errors(kept, str(failure)):
            failure.add_note(f"  last error in {error}")


def _as_evidence(kept: Path, failure: BaseException, evidence: KeepsLogs) -> Path | str:
    """Where the logs lie for whoever asked for evidence; a copy that fails must not hide what went wrong first."""
    said = "\n".join([str(failure) or repr(failure), *getattr(failure, "__notes__", ())])
    try:
        return evidence(kept, said)
    except OSError as lost:
        return f"{kept}, and they could not be copied into the report: {lost}"


def _undo(record: Record, progress: Progress) -> None:
    try:
        _remove(record, progress)
    except TestbedError as left:  # it must not hide what went wrong first
        progress.say(f"not everything could be removed: {left}")


def _keep_logs(record: Record) -> Path | str:
    """Where the logs are kept, or why they are not; a second failure must not hide the first one."""
    try:
        cluster = provider(record.provider).attach(record.name, state.cluster_folder(record.name))
        return state.keep_logs(record.name, cluster.collect_logs) if cluster else "none were written yet"
    except (OSError, TestbedError) as lost:
        return f"could not be kept: {lost}"


def _link_kubeconfig(name: str, cluster: Cluster) -> None:
    link = state.folder_of(name) / "kubeconfig"
    link.unlink(missing_ok=True)
    link.symlink_to(cluster.kubeconfig)
