"""Repair what failed, as far as the cluster's capabilities permit, and keep its logs as evidence. Used by `surroundings`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from testbed.bringup import Testbed, logs
from testbed.errors import TestbedError
from testbed.kube.client import Kube
from testbed.plugin.canaries.findings import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KUBELET,
    NODE,
    RUNTIME,
    SCHEDULER,
    CanaryState,
    FailedComponent,
)
from testbed.providers.base import (
    Capability,
    Cluster,
    RebootsNodes,
    RestartsApiServer,
    RestartsControlPlane,
    RestartsNodeComponents,
)
from testbed.redaction import redactor
from testbed.vocabulary.ledger import Ledger

_NEEDS = {
    API_SERVER: Capability.RESTART_API_SERVER,
    ETCD: Capability.RESTART_CONTROL_PLANE,
    SCHEDULER: Capability.RESTART_CONTROL_PLANE,
    CONTROLLER_MANAGER: Capability.RESTART_CONTROL_PLANE,
    NODE: Capability.REBOOT_NODE,
    KUBELET: Capability.RESTART_KUBELET,
    RUNTIME: Capability.RESTART_RUNTIME,
}
_LINES = 2000
_MOST_LOGS = 4


def restart(cluster: Cluster, failed: FailedComponent) -> None:
    """Restart a component, also one that runs and does not answer. Raise TestbedError if that is not possible."""
    needed = _NEEDS[failed.name]
    if needed not in cluster.capabilities:
        raise TestbedError(f"{failed} cannot be restarted: the cluster, or --allow, does not support {needed}")
    if failed.name == API_SERVER:
        cast("RestartsApiServer", cluster).restart_api_server()
    elif failed.name == NODE:
        cast("RebootsNodes", cluster).reboot(failed.node)
    elif failed.name == KUBELET:
        cast("RestartsNodeComponents", cluster).stop_kubelet(failed.node)
        cast("RestartsNodeComponents", cluster).start_kubelet(failed.node)
    elif failed.name == RUNTIME:
        cast("RestartsNodeComponents", cluster).stop_runtime(failed.node)
        cast("RestartsNodeComponents", cluster).start_runtime(failed.node)
    else:
        cast("RestartsControlPlane", cluster).restart_control_plane(failed.name)
        if failed.name == ETCD and Capability.RESTART_API_SERVER in cluster.capabilities:
            # Its connections to etcd have waited longer after each failed attempt, some of them for a minute.
            cast("RestartsApiServer", cluster).restart_api_server()


def escalated(cluster: Cluster, failed: FailedComponent) -> FailedComponent:
    """Return what to restart if restarting the component did not help: its whole node, where that is possible."""
    can_reboot = bool(failed.node) and Capability.REBOOT_NODE in cluster.capabilities
    return FailedComponent(NODE, failed.node, failed.seen) if can_reboot else failed


def keep_canaries(pods: Sequence[CanaryState], into: Path) -> None:
    """Write how far the canary pods came to the evidence: it shows that the cluster works without the driver. Nothing without pods."""
    if pods and into.is_dir():
        seen = "".join(f"on {each.node}: {each.seen}\n" for each in pods)
        (into / "canaries.txt").write_text(redactor.redact(seen))


def keep_logs(testbed: Testbed, failed: Sequence[FailedComponent], into: Path) -> None:
    """Write what was seen of the components, and the ends of their logs. What cannot be collected is noted in missing.txt."""
    into.mkdir(parents=True, exist_ok=True)
    seen = "".join(f"{each}: {each.seen}\n" for each in failed)
    (into / "seen.txt").write_text(redactor.redact(seen))
    try:
        with logs.collected(testbed.name) as folder:
            for each in failed:
                _copy_logs(folder, each, into)
    except (TestbedError, OSError) as lost:
        (into / "missing.txt").write_text(redactor.redact(f"logs: {lost}\n"))


def _copy_logs(folder: Path, failed: FailedComponent, into: Path) -> None:
    wanted = failed.node if failed.name == NODE else failed.name
    names = [name for name in logs.listed(folder) if wanted in name and failed.node in name]
    for name in names[:_MOST_LOGS]:
        lines = (folder / name).read_text(errors="replace").splitlines()[-_LINES:]
        (into / name.replace("/", "-")).write_text(redactor.redact("\n".join(lines) + "\n"))


def clean_up(kube: Kube, namespaces: Sequence[str]) -> None:
    """Delete what a test could not delete while a component was broken. It is not the test's clean-up that is judged."""
    for name in namespaces:
        with contextlib.suppress(TestbedError):
            home = kube.find("v1", "Namespace", name)
            if home:
                Ledger(kube, name, lambda each: each, [home]).clean_up()
