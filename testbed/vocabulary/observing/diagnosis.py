"""From what Kubernetes says about a pod to the likely cause, in one sentence. Pure; `should_…` words call it when they give up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from testbed.kube import messages
from testbed.kube.client import Object
from testbed.vocabulary.observing.observation import Diagnosis

_SHOWN = 3
_NOT_SCHEDULED = "not scheduled"
# Of a pod that has been started, these tell of another time.
_BEFORE_START = (messages.FAILED_SCHEDULING, messages.FAILED_PREPARE)
NOT_UNPREPARED = Diagnosis("a pod ends only when the driver has unprepared its claims")
_WHOLE_CALL = re.compile(re.escape(messages.PREPARE_CALL_FAILED) + r" (?P<code>\w+)")
_UNANSWERED = {"Unavailable", messages.DEADLINE_EXCEEDED, "Canceled", "Unimplemented"}
NO_DEVICE_FITS = "no free device fits"
_UNKNOWN = "the kubelet does not know the driver on this node: it never registered, or lost its socket"
_SILENT = "the driver's socket does not answer: is its pod running?"
_BROKEN = "the driver's connection broke while it prepared: it ended or was restarted"
ABSENT = frozenset({_UNKNOWN, _SILENT, _BROKEN})  # causes of which the driver's pod may say more
_NOISE = frozenset({"MissingClusterDNS"})  # warnings that every pod of a cluster without DNS gets
_PRESSURES = {
    "DiskPressure": "short of disk",
    "MemoryPressure": "short of memory",
    "PIDPressure": "short of process ids",
}

# (what an event or a status says, the likely cause, whether it is the environment's fault); of one line the first that fits is taken.
_INTERRUPTIONS: Sequence[tuple[str, str, bool]] = (
    ("pod Evicted", "the node ran short of something and evicted the pod", True),
    ("pod Preempting", "the node made room for a more important pod", True),
    ("pod NodeLost", "the node is away", True),
    ("pod NodeShutdown", "the node was shut down", True),
    ("pod Terminated", "the node was shut down", True),
)
_CAUSES: Sequence[tuple[str, str, bool]] = (
    *_INTERRUPTIONS,
    (messages.NODE_UNREACHABLE, "a node is away", True),
    (messages.NODE_NOT_READY, "a node is not ready", True),
    (messages.DISK_PRESSURE, "a node is short of disk", True),
    (messages.MEMORY_PRESSURE, "a node is short of memory", True),
    (messages.PID_PRESSURE, "a node is short of process ids", True),
    (messages.UNRESOLVABLE_CDI_DEVICES, "the driver answered a CDI id that no CDI file of the node defines", False),
    (
        messages.CLAIM_UNKNOWN_TO_AUTHORIZER,
        "the kubelet asked for the claim before the API server's authorizer knew of its pod, and asks again only at its next sync",
        True,
    ),
    (messages.DRIVER_NOT_REGISTERED, _UNKNOWN, False),
    (messages.NO_CONNECTION, _SILENT, False),
    (messages.DEADLINE_EXCEEDED, "the driver did not answer NodePrepareResources in time", False),
    *((f"{messages.PREPARE_CALL_FAILED} {code}", _BROKEN, False) for code in ("Unavailable", "Canceled")),
    ("NodePrepareResources", "the driver refused to prepare the claim, or left it out of its answer", False),
    (
        messages.NO_DEVICE_FITS,
        f"{NO_DEVICE_FITS}: all are taken, or the driver's ResourceSlices do not offer one",
        False,
    ),
    (messages.DEVICE_CLASS, "the DeviceClass of the driver file is not there", False),
    (messages.POOL_BEING_UPDATED, "the driver published only a part of its pool", False),
    (messages.PREPARE_FAILED, "the kubelet could not prepare the claim", False),
    (messages.IMAGE_ERROR, "the image is not on the node", True),
    (messages.IMAGE_PULL, "the image is not on the node", True),
    (messages.INVALID_IMAGE, "the manifest names an image that cannot be", True),
    (
        messages.UNTOLERATED_TAINT,
        "no node takes the tests' pods, for its taints (spec.nodes.tolerations of the driver file)",
        True,
    ),
    (messages.INSUFFICIENT, "the nodes are full", True),
    (messages.FAILED_SANDBOX, "the node cannot make pods: its runtime or network is broken", True),
    (messages.FAILED_MOUNT, "the node cannot mount a volume of the pod", True),
)


def diagnose(
    pod: Object | None, events: Sequence[Object], node: Object | None = None, nodes: Iterable[Object] = ()
) -> Diagnosis:
    """What probably keeps a pod from running. `node` is the one that the pod is on; without one, `nodes` are those that it could be on."""
    if pod is None:
        return Diagnosis("nobody created it: does the scenario's manifest name it so?", by_environment=True)
    heard = [event for event in events if event.get("type") == "Warning" and event.get("reason") not in _NOISE]
    warnings = tuple(map(line, heard))[-_SHOWN:]
    said = _said(pod, warnings)
    unwell = _unwell([node] if node else [], nodes if any(messages.UNTOLERATED_TAINT in each for each in said) else [])
    if unwell:  # whatever else is said, nobody is there who could run the pod
        return replace(unwell, warnings=warnings)
    known = NOT_UNPREPARED if _is_held(pod) else _known(_CAUSES, said)
    if known:
        return replace(known, warnings=warnings)
    if not pod["spec"].get("nodeName") and not _is_refused(said):
        return Diagnosis(
            "a claim of the pod is missing: the scheduler parks such a pod and says nothing", warnings=warnings
        )
    return Diagnosis("", warnings=warnings)


def _unwell(on: Sequence[Object], refused_by: Iterable[Object]) -> Diagnosis | None:
    """The nodes' part in it. Which taints keep a pod away the scheduler does not say since Kubernetes 1.36, so the nodes are asked."""
    nodes = [*on, *refused_by]
    lacking = short(nodes)
    away = describe_unready(nodes) or lacking
    return Diagnosis(away, by_environment=True, lasting=bool(lacking)) if away else None


def _said(pod: Object, warnings: Sequence[str]) -> list[str]:
    """What is said of a pod, newest first. What keeps it from a node now stands in its status: older events tell of another time."""
    now, is_started = _statuses(pod), pod.get("status", {}).get("phase") not in {None, "Pending"}
    over = _BEFORE_START if is_started else (messages.FAILED_SCHEDULING,) if _is_refused(now) else ()
    return [*now, *(each for each in reversed(warnings) if not each.startswith(over))]


def _is_refused(statuses: Iterable[str]) -> bool:
    return any(each.startswith(_NOT_SCHEDULED) for each in statuses)


def _is_held(pod: Object) -> bool:
    """Whether all its containers have ended for good, and it has not."""
    status = pod.get("status", {})
    states = [each.get("state", {}) for each in status.get("containerStatuses", ())]
    are_over = bool(states) and all("terminated" in each for each in states)
    is_once = pod["spec"].get("restartPolicy") == "Never" and status.get("phase") == "Running"
    return are_over and (is_once or bool(pod["metadata"].get("deletionTimestamp")))


def diagnose_interruption(pod: Object | None, node: Object | None = None) -> Diagnosis:
    """What took a pod out of the state in which it was, where that says who; what it was told on the way there does not count."""
    return (
        _unwell([node] if node else [], []) or _known(_INTERRUPTIONS, _statuses(pod) if pod else []) or Diagnosis.none()
    )


def _known(causes: Sequence[tuple[str, str, bool]], said: Sequence[str]) -> Diagnosis | None:
    """The cause of the newest thing said that has a known one: what was said before is overcome, or follows from the same."""
    return next(
        (Diagnosis(cause, by_environment) for line in said for text, cause, by_environment in causes if text in line),
        None,
    )


def describe_unready(nodes: Iterable[Object]) -> str:
    """Which of the nodes are not Ready or short of something, and why; '' when all are well."""
    return _which(nodes, lambda condition: _not_ready(condition) or _pressure(condition))


def short(nodes: Iterable[Object]) -> str:
    """Which of the nodes are under pressure, so that they take no pods, and why; '' when none is."""
    return _which(nodes, _pressure)


def _which(nodes: Iterable[Object], trouble: Callable[[Object], str]) -> str:
    found = [
        f"node {node['metadata']['name']} is {what}: {each.get('message') or each.get('reason', '')}".rstrip(" .:")
        for node in nodes
        for each in node.get("status", {}).get("conditions", ())
        if (what := trouble(each))
    ]
    return "; ".join(found)


def _not_ready(condition: Object) -> str:
    return "not Ready" if condition["type"] == "Ready" and condition["status"] != "True" else ""


def _pressure(condition: Object) -> str:
    return _PRESSURES.get(condition["type"], "") if condition["status"] == "True" else ""


def describe_pod(pod: Object) -> str:
    """A pod's state in a few words."""
    phase, node = pod.get("status", {}).get("phase", "new"), pod["spec"].get("nodeName")
    phase += ", to be deleted" if pod["metadata"].get("deletionTimestamp") else ""
    return "; ".join([f"{phase} on {node}" if node else f"{phase}, on no node", *_statuses(pod)])


def is_prepare_error(event: Object, claim: str) -> bool:
    """Whether a driver refused to prepare a claim, as a kubelet of 1.34 or newer tells it.

    The protocol lets a driver refuse one claim in its own entry of the answer, or fail the whole call. A call that nobody
    answered, or not in time, is no refusal.
    """
    if event.get("reason") != messages.FAILED_PREPARE:
        return False
    whole_call = _WHOLE_CALL.search(event.get("message", ""))
    return f"{messages.PREPARE_FAILED_FOR_CLAIM} {claim}:" in event.get("message", "") or bool(
        whole_call and whole_call["code"] not in _UNANSWERED
    )


def is_driver_unavailable(event: Object) -> bool:
    """Whether a kubelet could prepare nothing because nobody answers for a driver: none is registered, or no call gets through."""
    if event.get("reason") != messages.FAILED_PREPARE:
        return False
    message = event.get("message", "")
    call = _WHOLE_CALL.search(message)
    return messages.DRIVER_NOT_REGISTERED in message or bool(call and call["code"] in _UNANSWERED)


def oldest_first(events: Iterable[Object]) -> list[Object]:
    """Events, the newest last."""
    return sorted(
        events,
        key=lambda e: e.get("lastTimestamp") or e.get("eventTime") or e["metadata"].get("creationTimestamp") or "",
    )


def times(event: Object) -> int:
    """How often it was so, as its event says."""
    return int(event.get("count") or (event.get("series") or {}).get("count") or 1)


def line(event: Object) -> str:
    """An event as people read it."""
    return f"{event.get('reason', '')}: {event.get('message', '')}"


def _statuses(pod: Object) -> list[str]:
    """What the pod itself, its containers and its scheduling say, without what is well."""
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
    return lines + [f"{_NOT_SCHEDULED}: {each.get('message', each.get('reason', ''))}" for each in refused(pod)]


def refused(pod: Object) -> list[Object]:
    """The conditions in which the scheduler says that no node takes a pod; none when it took one, or says nothing."""
    conditions = pod.get("status", {}).get("conditions", ())
    return [each for each in conditions if each["type"] == "PodScheduled" and each["status"] != "True"]


def lacks_devices(pod: Object) -> bool:
    """Whether the scheduler says that it found no free device for a pod."""
    return any(messages.NO_DEVICE_FITS in each.get("message", "") for each in refused(pod))
