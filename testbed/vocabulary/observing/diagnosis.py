"""Find the likely cause that a pod is not in the expected state, from its status, its events and its nodes. Pure; for failed waits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from testbed.drivers.published.taints import is_named_after, is_own_taint, is_tolerated
from testbed.kube import messages
from testbed.kube.client import Object
from testbed.vocabulary.observing.causes import CONTAINER, POD, Report, cause_of, interruption
from testbed.vocabulary.observing.observation import Diagnosis

_SHOWN = 3
_CDI_ID = re.compile(r"[\w.-]+/[\w.-]+=[\w.:-]*\w")
_NOT_SCHEDULED = "not scheduled"
# Outdated once the pod has started.
_BEFORE_START = (messages.FAILED_SCHEDULING, messages.FAILED_PREPARE)
NOT_UNPREPARED = Diagnosis("a pod ends only when the driver has unprepared its claims", by_driver=True)
_OF_ADMINISTRATOR = "if an administrator set it, add a toleration to spec.nodes.tolerations of the driver file"
_NOISE = frozenset({"MissingClusterDNS"})  # on every pod of a cluster without DNS
_PRESSURES = {
    "DiskPressure": "short of disk",
    "MemoryPressure": "short of memory",
    "PIDPressure": "short of process ids",
}


def diagnose(
    pod: Object | None,
    events: Sequence[Object],
    node: Object | None = None,
    nodes: Sequence[Object] = (),
    *,
    driver: str = "",
    in_sandbox: bool = False,
) -> Diagnosis:
    """Return the likely cause that a pod does not run. `node` is the node of the pod; without it, `nodes` are the possible nodes.

    `driver` is the name of the driver. `in_sandbox` is True if it works while sandboxes are created.
    """
    if pod is None:
        return Diagnosis("the pod was never created: is this its name in the scenario's manifest?", by_environment=True)
    relevant = [event for event in events if event.get("type") == "Warning" and event.get("reason") not in _NOISE]
    warnings = tuple(map(event_text, relevant))[-_SHOWN:]
    reports = _current_reports(pod, relevant[-_SHOWN:])
    is_repelled = any(_is_repelled(each) for each in reports)
    by_nodes = _diagnose_nodes([node] if node else [], nodes if is_repelled else [])
    if by_nodes:  # no kubelet can run the pod, whatever else is reported
        return replace(by_nodes, warnings=warnings)
    own_taint = _own_taint(pod, nodes, driver) if is_repelled and driver else None
    causes = (found for each in reports if (found := cause_of(each, in_sandbox=in_sandbox)))
    known = NOT_UNPREPARED if _waits_for_unprepare(pod) else own_taint or next(causes, None)
    if known:  # of the newest report that has a known cause: older ones are outdated or have the same cause
        return replace(known, warnings=warnings)
    if not pod["spec"].get("nodeName") and not unschedulable_conditions(pod):
        return Diagnosis(
            "a claim of the pod is missing: the scheduler ignores the pod until it exists, and reports nothing",
            warnings=warnings,
        )
    return Diagnosis("", warnings=warnings)


def unresolvable_cdi_ids(pod: Object, events: Iterable[Object]) -> list[str]:
    """Return the CDI IDs that the container runtime could not resolve for a pod."""
    reports = [*_status_reports(pod), *map(Report.of_event, events)]
    ends = [each.message.partition(messages.UNRESOLVABLE_CDI_DEVICES)[2] for each in reports]
    return list(dict.fromkeys(found for end in ends for found in _CDI_ID.findall(end)))


def _is_repelled(report: Report) -> bool:
    return report.reason == messages.FAILED_SCHEDULING and messages.UNTOLERATED_TAINT in report.message


def _own_taint(pod: Object, nodes: Iterable[Object], driver: str) -> Diagnosis | None:
    """Return the cause if a taint in the domain of the driver keeps a pod off a node. Since Kubernetes 1.36 the scheduler names no taints.

    Only one that is named after the driver is certainly the driver's: clouds and administrators use the vendor's domain, too.
    """
    tolerations = pod["spec"].get("tolerations") or ()
    found = [
        (
            str(taint["key"]),
            f"node {node['metadata']['name']} has the taint {taint['key']}, which is in the domain of the driver",
        )
        for node in nodes
        for taint in node.get("spec", {}).get("taints") or ()
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not is_tolerated(taint, tolerations)
        if is_own_taint(str(taint["key"]), driver)
    ]
    cause = "; ".join(text for _, text in found)
    if any(is_named_after(key, driver) for key, _ in found):
        return Diagnosis(cause, by_driver=True)
    return Diagnosis(f"{cause}; {_OF_ADMINISTRATOR}", by_environment=True) if found else None


def _diagnose_nodes(on: Sequence[Object], repelled_by: Iterable[Object]) -> Diagnosis | None:
    """Return the cause if nodes are not Ready or under pressure. Since Kubernetes 1.36 the scheduler does not name the taints."""
    nodes = [*on, *repelled_by]
    pressure = describe_pressure(nodes)
    unready = describe_unready(nodes) or pressure
    return Diagnosis(unready, by_environment=True, lasting=bool(pressure)) if unready else None


def _current_reports(pod: Object, warnings: Sequence[Object]) -> list[Report]:
    """Return what the pod's status and its warnings report, newest first, without the warnings that the status has overtaken."""
    is_started = pod.get("status", {}).get("phase") not in {None, "Pending"}
    is_unschedulable = bool(unschedulable_conditions(pod))
    outdated = _BEFORE_START if is_started else (messages.FAILED_SCHEDULING,) if is_unschedulable else ()
    newest_first = (Report.of_event(each) for each in reversed(warnings))
    return [*_status_reports(pod), *(each for each in newest_first if each.reason not in outdated)]


def _status_reports(pod: Object) -> list[Report]:
    """Return what the status reports about the pod, its containers that do not run, and its scheduling."""
    status = pod.get("status", {})
    own = [Report(POD, status["reason"], status.get("message", ""))] if status.get("reason") else []
    containers = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    states = [state for each in containers for kind, state in each.get("state", {}).items() if kind != "running"]
    return [
        *own,
        *(Report(CONTAINER, state.get("reason", ""), state.get("message", "")) for state in states),
        *(
            Report("event", messages.FAILED_SCHEDULING, each.get("message", ""))
            for each in unschedulable_conditions(pod)
        ),
    ]


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
    reports = _status_reports(pod) if pod else []
    return by_nodes or next(filter(None, map(interruption, reports)), None) or Diagnosis.none()


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
    return "; ".join([f"{phase} on {node}" if node else f"{phase}, on no node", *map(one_line, _statuses(pod))])


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
    """Return reason and message of an event in one line: a driver could write lines that look like those of a diagnosis."""
    return one_line(f"{event.get('reason', '')}: {event.get('message', '')}")


def one_line(text: str) -> str:
    """Return a text without line breaks."""
    return " ".join(text.split())


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
