"""Find the likely cause that a pod is not in the expected state, from its status, its events and its nodes. Pure; for failed waits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from testbed.kube import messages
from testbed.kube.client import Object
from testbed.vocabulary.observing.observation import Diagnosis

_SHOWN = 3
_NOT_SCHEDULED = "not scheduled"
# Outdated once the pod has started.
_BEFORE_START = (messages.FAILED_SCHEDULING, messages.FAILED_PREPARE)
NOT_UNPREPARED = Diagnosis("a pod ends only when the driver has unprepared its claims")
_WHOLE_CALL = re.compile(re.escape(messages.PREPARE_CALL_FAILED) + r" (?P<code>\w+)")
_UNANSWERED = {"Unavailable", messages.DEADLINE_EXCEEDED, "Canceled", "Unimplemented"}
NO_DEVICE_FITS = "no free device fits"
_NOT_REGISTERED = (
    "the driver is not registered with the kubelet of this node: it never registered, or its socket is gone"
)
_NO_ANSWER = "nothing answers at the driver's socket: is its pod running?"
_BROKEN = "the connection to the driver broke during NodePrepareResources: the driver ended or was restarted"
DRIVER_UNREACHABLE = frozenset(
    {_NOT_REGISTERED, _NO_ANSWER, _BROKEN}
)  # causes to which the state of the driver's pod is added
_NOISE = frozenset({"MissingClusterDNS"})  # on every pod of a cluster without DNS
_PRESSURES = {
    "DiskPressure": "short of disk",
    "MemoryPressure": "short of memory",
    "PIDPressure": "short of process ids",
}

# Part of an event or a status, the likely cause, and whether the environment causes it. The first match in a line counts.
_INTERRUPTIONS: Sequence[tuple[str, str, bool]] = (
    ("pod Evicted", "the node ran short of a resource and evicted the pod", True),
    ("pod Preempting", "the node preempted the pod for one of higher priority", True),
    ("pod NodeLost", "the node is unreachable", True),
    ("pod NodeShutdown", "the node was shut down", True),
    ("pod Terminated", "the node was shut down", True),
)
_CAUSES: Sequence[tuple[str, str, bool]] = (
    *_INTERRUPTIONS,
    (messages.NODE_UNREACHABLE, "a node is unreachable", True),
    (messages.NODE_NOT_READY, "a node is not ready", True),
    (messages.DISK_PRESSURE, "a node is short of disk", True),
    (messages.MEMORY_PRESSURE, "a node is short of memory", True),
    (messages.PID_PRESSURE, "a node is short of process ids", True),
    (messages.UNRESOLVABLE_CDI_DEVICES, "the driver returned a CDI ID that no CDI file on the node defines", False),
    (
        messages.CLAIM_UNKNOWN_TO_AUTHORIZER,
        "the kubelet requested the claim before the API server's node authorizer knew the pod, and retries only at its next sync",
        True,
    ),
    (messages.DRIVER_NOT_REGISTERED, _NOT_REGISTERED, False),
    (messages.NO_CONNECTION, _NO_ANSWER, False),
    (messages.DEADLINE_EXCEEDED, "the driver did not answer NodePrepareResources in time", False),
    *((f"{messages.PREPARE_CALL_FAILED} {code}", _BROKEN, False) for code in ("Unavailable", "Canceled")),
    ("NodePrepareResources", "the driver refused to prepare the claim, or its response lacks the claim", False),
    (
        messages.NO_DEVICE_FITS,
        f"{NO_DEVICE_FITS}: all are allocated, or no device in the driver's ResourceSlices matches",
        False,
    ),
    (messages.DEVICE_CLASS, "the DeviceClass of the driver file does not exist", False),
    (messages.POOL_BEING_UPDATED, "the driver published only part of its pool", False),
    (messages.PREPARE_FAILED, "the kubelet could not prepare the claim", False),
    (messages.IMAGE_ERROR, "the image is not on the node", True),
    (messages.IMAGE_PULL, "the image is not on the node", True),
    (messages.INVALID_IMAGE, "the manifest has an invalid image name", True),
    (
        messages.UNTOLERATED_TAINT,
        "the tests' pods do not tolerate the taints of the nodes: add tolerations to spec.nodes.tolerations of the driver file",
        True,
    ),
    (messages.INSUFFICIENT, "the nodes have too little free CPU, memory or other resources", True),
    (messages.FAILED_SANDBOX, "the node cannot create pod sandboxes: its container runtime or network is broken", True),
    (messages.FAILED_MOUNT, "the node cannot mount a volume of the pod", True),
)


def diagnose(
    pod: Object | None, events: Sequence[Object], node: Object | None = None, nodes: Iterable[Object] = ()
) -> Diagnosis:
    """Return the likely cause that a pod does not run. `node` is the node of the pod; without it, `nodes` are the possible nodes."""
    if pod is None:
        return Diagnosis("the pod was never created: is this its name in the scenario's manifest?", by_environment=True)
    relevant = [event for event in events if event.get("type") == "Warning" and event.get("reason") not in _NOISE]
    warnings = tuple(map(event_text, relevant))[-_SHOWN:]
    lines = _current_lines(pod, warnings)
    is_repelled = any(messages.UNTOLERATED_TAINT in each for each in lines)
    by_nodes = _diagnose_nodes([node] if node else [], nodes if is_repelled else [])
    if by_nodes:  # no kubelet can run the pod, whatever else is reported
        return replace(by_nodes, warnings=warnings)
    known = NOT_UNPREPARED if _waits_for_unprepare(pod) else _known_cause(_CAUSES, lines)
    if known:
        return replace(known, warnings=warnings)
    if not pod["spec"].get("nodeName") and not _is_unschedulable(lines):
        return Diagnosis(
            "a claim of the pod is missing: the scheduler ignores the pod until it exists, and reports nothing",
            warnings=warnings,
        )
    return Diagnosis("", warnings=warnings)


def _diagnose_nodes(on: Sequence[Object], repelled_by: Iterable[Object]) -> Diagnosis | None:
    """Return the cause if nodes are not Ready or under pressure. Since Kubernetes 1.36 the scheduler does not name the taints."""
    nodes = [*on, *repelled_by]
    pressure = describe_pressure(nodes)
    unready = describe_unready(nodes) or pressure
    return Diagnosis(unready, by_environment=True, lasting=bool(pressure)) if unready else None


def _current_lines(pod: Object, warnings: Sequence[str]) -> list[str]:
    """Return the pod's status and its warnings as lines, newest first, without the warnings that the status has overtaken."""
    now, is_started = _statuses(pod), pod.get("status", {}).get("phase") not in {None, "Pending"}
    outdated = _BEFORE_START if is_started else (messages.FAILED_SCHEDULING,) if _is_unschedulable(now) else ()
    return [*now, *(each for each in reversed(warnings) if not each.startswith(outdated))]


def _is_unschedulable(statuses: Iterable[str]) -> bool:
    return any(each.startswith(_NOT_SCHEDULED) for each in statuses)


def _waits_for_unprepare(pod: Object) -> bool:
    """Return True if all containers have terminated for good, but the pod has not ended."""
    status = pod.get("status", {})
    states = [each.get("state", {}) for each in status.get("containerStatuses", ())]
    are_over = bool(states) and all("terminated" in each for each in states)
    is_once = pod["spec"].get("restartPolicy") == "Never" and status.get("phase") == "Running"
    return are_over and (is_once or bool(pod["metadata"].get("deletionTimestamp")))


def diagnose_interruption(pod: Object | None, node: Object | None = None) -> Diagnosis:
    """Return the likely cause that a pod left its state, from its status and its node; its earlier events do not count."""
    by_nodes = _diagnose_nodes([node] if node else [], [])
    return by_nodes or _known_cause(_INTERRUPTIONS, _statuses(pod) if pod else []) or Diagnosis.none()


def _known_cause(causes: Sequence[tuple[str, str, bool]], lines: Sequence[str]) -> Diagnosis | None:
    """Return the cause of the newest line that has a known one; older lines are outdated or have the same cause."""
    found = ((cause, by_environment) for line in lines for text, cause, by_environment in causes if text in line)
    return next((Diagnosis(*each) for each in found), None)


def describe_unready(nodes: Iterable[Object]) -> str:
    """Describe the nodes that are not Ready or under pressure; '' if there is none."""
    return _describe_nodes(nodes, lambda condition: _not_ready(condition) or _pressure(condition))


def describe_pressure(nodes: Iterable[Object]) -> str:
    """Describe the nodes under pressure, which accept no pods; '' if there is none."""
    return _describe_nodes(nodes, _pressure)


def _describe_nodes(nodes: Iterable[Object], problem: Callable[[Object], str]) -> str:
    found = [
        f"node {node['metadata']['name']} is {what}: {each.get('message') or each.get('reason', '')}".rstrip(" .:")
        for node in nodes
        for each in node.get("status", {}).get("conditions", ())
        if (what := problem(each))
    ]
    return "; ".join(found)


def _not_ready(condition: Object) -> str:
    return "not Ready" if condition["type"] == "Ready" and condition["status"] != "True" else ""


def _pressure(condition: Object) -> str:
    return _PRESSURES.get(condition["type"], "") if condition["status"] == "True" else ""


def describe_pod(pod: Object) -> str:
    """Describe the state of a pod in one line."""
    phase, node = pod.get("status", {}).get("phase", "new"), pod["spec"].get("nodeName")
    phase += ", terminating" if pod["metadata"].get("deletionTimestamp") else ""
    return "; ".join([f"{phase} on {node}" if node else f"{phase}, on no node", *_statuses(pod)])


def is_prepare_error(event: Object, claim: str) -> bool:
    """Return True if a driver answered NodePrepareResources with an error for this claim, or for the whole call.

    A call without an answer, or with a late one, does not count.
    """
    if event.get("reason") != messages.FAILED_PREPARE:
        return False
    whole_call = _WHOLE_CALL.search(event.get("message", ""))
    return f"{messages.PREPARE_FAILED_FOR_CLAIM} {claim}:" in event.get("message", "") or bool(
        whole_call and whole_call["code"] not in _UNANSWERED
    )


def is_driver_unavailable(event: Object) -> bool:
    """Return True if a kubelet could not prepare claims because the driver is not registered or does not answer."""
    if event.get("reason") != messages.FAILED_PREPARE:
        return False
    message = event.get("message", "")
    call = _WHOLE_CALL.search(message)
    return messages.DRIVER_NOT_REGISTERED in message or bool(call and call["code"] in _UNANSWERED)


def oldest_first(events: Iterable[Object]) -> list[Object]:
    """Return events in the order of their time."""
    return sorted(
        events,
        key=lambda e: e.get("lastTimestamp") or e.get("eventTime") or e["metadata"].get("creationTimestamp") or "",
    )


def occurrences(event: Object) -> int:
    """Return how often an event occurred."""
    return int(event.get("count") or (event.get("series") or {}).get("count") or 1)


def event_text(event: Object) -> str:
    """Return reason and message of an event."""
    return f"{event.get('reason', '')}: {event.get('message', '')}"


def _statuses(pod: Object) -> list[str]:
    """Return what the status says about the pod, its containers and its scheduling, without what is normal."""
    status = pod.get("status", {})
    lines = [f"pod {status['reason']}: {status.get('message', '')}".rstrip(" :")] if status.get("reason") else []
    for each in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        for kind, state in each.get("state", {}).items():
            if kind != "running":
                code = f" with {state['exitCode']}" if "exitCode" in state else ""
                lines.append(
                    f"container {each['name']} {kind}{code}: {state.get('reason', '')} {state.get('message', '')}".rstrip(
                        " :"
                    )
                )
    return lines + [
        f"{_NOT_SCHEDULED}: {each.get('message', each.get('reason', ''))}" for each in unschedulable_conditions(pod)
    ]


def unschedulable_conditions(pod: Object) -> list[Object]:
    """Return the conditions PodScheduled that are not True."""
    conditions = pod.get("status", {}).get("conditions", ())
    return [each for each in conditions if each["type"] == "PodScheduled" and each["status"] != "True"]


def lacks_devices(pod: Object) -> bool:
    """Return True if the scheduler found no free device for a pod."""
    return any(messages.NO_DEVICE_FITS in each.get("message", "") for each in unschedulable_conditions(pod))
