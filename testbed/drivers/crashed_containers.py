"""Finds crashed containers of a driver's pod, and whether their own process caused the crash, as `ready` needs to know. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from testbed.kube import messages
from testbed.kube.client import Object

# Reasons of runtime and kubelet for a container that they could not start or lost track of; the exit code is not the process's.
_NOT_BY_PROCESS = frozenset({messages.START_ERROR, "ContainerCannotRun", "ContainerStatusUnknown", "Unknown"})


@dataclass(frozen=True)
class Crash:
    """An abnormal termination of one container. `by_process` is True if its own process exited non-zero."""

    description: str
    by_process: bool

    def __str__(self) -> str:
        return self.description


def find_crashes(pod: Object) -> list[Crash]:
    """Return the crashes of a pod's containers, from their current or last state."""
    name = pod["metadata"]["name"]
    # The reason of a pod names what was done to it: evicted, shut down with its node, rejected.
    pod_reason = pod.get("status", {}).get("reason", "")
    found = [crash for each in container_statuses(pod) for crash in _crashes(each, name, _with_memory_limit(pod))]
    return [Crash(f"{each} ({pod_reason})", by_process=False) for each in found] if pod_reason else found


def container_statuses(pod: Object) -> list[Object]:
    """Return the statuses of a pod's containers, init containers first."""
    status = pod.get("status", {})
    return [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]


def _crashes(container: Object, pod: str, limited: frozenset[str]) -> Iterator[Crash]:
    name = f"container {container['name']} of pod {pod}"
    now = container.get("state", {})
    terminated = [state["terminated"] for state in (now, container.get("lastState", {})) if "terminated" in state]
    failed = [each for each in terminated if each.get("exitCode")]
    for each in failed[:1]:
        reason, message = each.get("reason", ""), each.get("message", "")
        above_limit = reason == "OOMKilled" and container["name"] in limited
        by_process = reason not in _NOT_BY_PROCESS and (reason != "OOMKilled" or above_limit)
        details = "" if reason in ("", "Error") else f" ({reason}{' above its memory limit' if above_limit else ''})"
        cause = f": {message}" if message and not by_process else ""
        yield Crash(f"{name} exited with code {each['exitCode']}{details}{cause}", by_process)
    if not failed and now.get("waiting", {}).get("reason") == messages.CRASH_LOOP:
        yield Crash(f"{name} is in {messages.CRASH_LOOP}", by_process=True)


def _with_memory_limit(pod: Object) -> frozenset[str]:
    """Return the containers with a memory limit. Others are killed only if the node runs out of memory."""
    spec = pod.get("spec", {})
    containers = [*spec.get("initContainers", ()), *spec.get("containers", ())]
    return frozenset(each["name"] for each in containers if each.get("resources", {}).get("limits", {}).get("memory"))
