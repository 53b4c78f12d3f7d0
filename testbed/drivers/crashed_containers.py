"""How the containers of a driver's pod ended badly, and whether that was their own doing. Pure; for `ready`, which blames by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from testbed.kube import messages
from testbed.kube.client import Object

# What runtime and kubelet write down for a container that they could not start, or lost sight of; no program gave that exit code.
_NOT_ITS_DOING = frozenset({"StartError", "ContainerCannotRun", "ContainerStatusUnknown", "Unknown"})


@dataclass(frozen=True)
class Crash:
    """A bad end of one container, in words; `own`: its program did it."""

    said: str
    own: bool

    def __str__(self) -> str:
        return self.said


def find_crashes(pod: Object) -> list[Crash]:
    """The bad ends of its containers, now or the last time, whether they printed something or not."""
    name = pod["metadata"]["name"]
    # A reason of the whole pod is what was done to it: evicted for want of disk or memory, shut down with its node, refused.
    whole = pod.get("status", {}).get("reason", "")
    found = [ending for each in container_statuses(pod) for ending in _of(each, name, _limited(pod))]
    return [Crash(f"{each} ({whole})", own=False) for each in found] if whole else found


def container_statuses(pod: Object) -> list[Object]:
    """What the kubelet says of its containers; those that come first, first."""
    status = pod.get("status", {})
    return [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]


def _of(container: Object, pod: str, limited: frozenset[str]) -> Iterator[Crash]:
    who = f"container {container['name']} of {pod}"
    now = container.get("state", {})
    ends = [state["terminated"] for state in (now, container.get("lastState", {})) if "terminated" in state]
    bad = [end for end in ends if end.get("exitCode")]
    for end in bad[:1]:
        reason, message = end.get("reason", ""), end.get("message", "")
        memory = " beyond its memory limit" if reason == "OOMKilled" and container["name"] in limited else ""
        own = reason not in _NOT_ITS_DOING and (reason != "OOMKilled" or bool(memory))
        details = "" if reason in ("", "Error") else f" ({reason}{memory})"
        yield Crash(f"{who} ended with {end['exitCode']}{details}{f': {message}' if message and not own else ''}", own)
    if not bad and now.get("waiting", {}).get("reason") == messages.CRASH_LOOP:
        yield Crash(f"{who} ends again and again", own=True)


def _limited(pod: Object) -> frozenset[str]:
    """Containers with a memory limit of their own. Who has none was killed because the node had no more, whoever took it."""
    spec = pod.get("spec", {})
    every = [*spec.get("initContainers", ()), *spec.get("containers", ())]
    return frozenset(each["name"] for each in every if each.get("resources", {}).get("limits", {}).get("memory"))
