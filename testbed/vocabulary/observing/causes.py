"""The likely cause of what Kubernetes reports about a pod, and who is to blame for it. Pure; for `diagnosis`.

Reasons and the beginnings of messages decide, which only Kubernetes and the container runtime write. A driver or a container can
put any words into the rest of a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from testbed.kube import messages
from testbed.kube.client import Object
from testbed.vocabulary.observing.observation import Diagnosis
from testbed.vocabulary.observing.prepare_errors import PrepareError, read_prepare_error

NO_DEVICE_FITS = "no free device fits"
POD = "pod status"  # the source of a report, like the reasons of events
CONTAINER = "container status"

_NOT_REGISTERED = (
    "the driver is not registered with the kubelet of this node: it never registered, or its socket is gone"
)
_NO_ANSWER = "nothing answers at the driver's socket: is its pod running?"
_BROKEN = "the connection to the driver broke during NodePrepareResources: the driver ended or was restarted"
# Causes to which the state of the driver's pod is added.
DRIVER_UNREACHABLE = frozenset({_NOT_REGISTERED, _NO_ANSWER, _BROKEN})
CDI_UNRESOLVABLE = "the driver returned a CDI ID that the CDI files on the node do not define"
_IMAGE = Diagnosis("the image is not on the node", by_environment=True)
_AUTHORIZER = "the kubelet requested the claim before the API server's node authorizer knew the pod, and retries only at its next sync"
_SANDBOX = "the node cannot create pod sandboxes: its container runtime or network is broken"
_SANDBOX_BY_DRIVER = (
    "the driver acts on the sandboxes of pods (NRI), and the container runtime could not create the sandbox"
)

_INTERRUPTIONS = {
    "Evicted": "the node ran short of a resource and evicted the pod",
    "Preempting": "the node preempted the pod for one of higher priority",
    "NodeLost": "the node is unreachable",
    "NodeShutdown": "the node was shut down",
    "Terminated": "the node was shut down",
}
# Parts of the scheduler's messages, in which no driver can write. The first one in the message counts.
_SCHEDULING: Sequence[tuple[str, str, bool]] = (
    (messages.NODE_UNREACHABLE, "a node is unreachable", True),
    (messages.NODE_NOT_READY, "a node is not ready", True),
    (messages.DISK_PRESSURE, "a node is short of disk", True),
    (messages.MEMORY_PRESSURE, "a node is short of memory", True),
    (messages.PID_PRESSURE, "a node is short of process ids", True),
    (
        messages.NO_DEVICE_FITS,
        f"{NO_DEVICE_FITS}: all are allocated, or no device in the driver's ResourceSlices matches",
        False,
    ),
    (messages.DEVICE_CLASS, "the DeviceClass of the driver file does not exist", False),
    (messages.POOL_BEING_UPDATED, "the driver published only part of its pool", False),
    (
        messages.UNTOLERATED_TAINT,
        "the tests' pods do not tolerate the taints of the nodes: add tolerations to spec.nodes.tolerations of the driver file",
        True,
    ),
    (messages.INSUFFICIENT, "the nodes have too little free CPU, memory or other resources", True),
)


@dataclass(frozen=True)
class Report:
    """One thing that Kubernetes reports about a pod: its source (POD, CONTAINER, or `event`), reason and message."""

    source: str
    reason: str
    message: str

    @classmethod
    def of_event(cls, event: Object) -> Report:
        """Return what an event reports."""
        return cls("event", str(event.get("reason") or ""), str(event.get("message") or ""))


def cause_of(report: Report, *, in_sandbox: bool = False) -> Diagnosis | None:
    """Return the likely cause of a report, or None. `in_sandbox` is True if the driver works while sandboxes are created."""
    if report.source == POD:
        return interruption(report)
    if report.source == CONTAINER:
        return _container_cause(report)
    return _event_cause(report, in_sandbox=in_sandbox)


def _event_cause(report: Report, *, in_sandbox: bool) -> Diagnosis | None:
    if report.reason == messages.FAILED_SCHEDULING:
        return _first(_SCHEDULING, report.message)
    if report.reason == messages.FAILED_PREPARE:
        return _prepare_cause(read_prepare_error({"reason": report.reason, "message": report.message}))
    if report.reason == messages.FAILED_SANDBOX:
        return _sandbox_cause(report.message, in_sandbox=in_sandbox)
    if report.reason == messages.FAILED_MOUNT:
        return Diagnosis("the node cannot mount a volume of the pod", by_environment=True)
    return _image_event_cause(report)


def interruption(report: Report) -> Diagnosis | None:
    """Return why a node ended a pod, or None if the report says something else."""
    cause = _INTERRUPTIONS.get(report.reason) if report.source == POD else None
    return Diagnosis(cause, by_environment=True) if cause else None


def _first(causes: Iterable[tuple[str, str, bool]], message: str) -> Diagnosis | None:
    found = (Diagnosis(cause, by_environment) for text, cause, by_environment in causes if text in message)
    return next(found, None)


def _container_cause(report: Report) -> Diagnosis | None:
    if report.reason.startswith((messages.IMAGE_ERROR, messages.IMAGE_PULL)):
        return _IMAGE
    if report.reason == messages.INVALID_IMAGE:
        return Diagnosis("the manifest has an invalid image name", by_environment=True)
    if report.reason == messages.CREATE_CONTAINER_ERROR and messages.UNRESOLVABLE_CDI_DEVICES in report.message:
        return Diagnosis(CDI_UNRESOLVABLE, by_driver=True)
    return None


def _image_event_cause(report: Report) -> Diagnosis | None:
    if report.reason.startswith(messages.IMAGE_ERROR) or report.message.startswith(messages.IMAGE_EVENTS):
        return _IMAGE
    if messages.UNRESOLVABLE_CDI_DEVICES in report.message:  # before a container has a status
        return Diagnosis(CDI_UNRESOLVABLE, by_driver=True)
    return None


def _prepare_cause(error: PrepareError | None) -> Diagnosis | None:
    if error is None:
        return None
    if error.is_unknown_to_authorizer:
        return Diagnosis(_AUTHORIZER, by_environment=True)
    if error.is_before_driver:
        cause = "the kubelet could not read the claim from the API server, or could not write its checkpoint"
        return Diagnosis(cause, by_environment=True)
    if error.is_unregistered:
        return Diagnosis(_NOT_REGISTERED, by_driver=True)
    if not error.called:
        return Diagnosis("the kubelet could not prepare the claim")
    return Diagnosis(_call_cause(error), by_driver=True)


def _call_cause(error: PrepareError) -> str:
    """Return why a call of the driver failed."""
    if error.code == messages.DEADLINE_EXCEEDED:
        return "the driver did not answer NodePrepareResources in time"
    if error.code == "Unavailable" and error.answer.startswith(messages.NO_CONNECTION):
        return _NO_ANSWER
    if error.code in ("Unavailable", "Canceled"):
        return _BROKEN
    return "the driver refused to prepare the claim, or its response lacks the claim"


def _sandbox_cause(message: str, *, in_sandbox: bool) -> Diagnosis:
    """Return why no sandbox was created. The container runtime names the network in its own words, before those of plugins."""
    nri, network = message.find(messages.SANDBOX_NRI), message.find(messages.SANDBOX_NETWORK)
    by_network = network >= 0 and (nri < 0 or network < nri)
    if in_sandbox and not by_network:
        return Diagnosis(_SANDBOX_BY_DRIVER, by_driver=True)
    return Diagnosis(_SANDBOX, by_environment=True)
