"""Checks of a pod's state, for the waits. Pure: each returns, or raises NotYet or StateUnreachable with what was seen."""

from __future__ import annotations

from collections.abc import Callable

from testbed.kube.client import Object
from testbed.vocabulary.observing.diagnosis import describe_pod
from testbed.vocabulary.observing.observation import StateUnreachable
from testbed.waiting import NotYet

Check = Callable[[Object], None]


def running(pod: Object) -> None:
    """Require that all containers run."""
    status = pod.get("status", {})
    started = [each["name"] for each in status.get("containerStatuses", ()) if "running" in each.get("state", {})]
    if status.get("phase") in ("Succeeded", "Failed"):
        raise StateUnreachable(describe_pod(pod))
    if len(started) < len(pod["spec"]["containers"]):
        raise NotYet(describe_pod(pod))


def ended(pod: Object) -> None:
    """Require that the pod has succeeded or failed."""
    if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
        raise NotYet(describe_pod(pod))


def succeeded(pod: Object) -> None:
    """Require that the pod has succeeded."""
    ended(pod)
    if pod["status"]["phase"] == "Failed":
        raise StateUnreachable(describe_pod(pod))


def pending(pod: Object) -> None:
    """Require that no container has ever been started."""
    status = pod.get("status", {})
    started = [
        each["name"]
        for each in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
        if "waiting" not in each.get("state", {"waiting": {}})
    ]
    if status.get("phase", "Pending") != "Pending" or started:
        raise NotYet(describe_pod(pod))


def not_deleted(check: Check) -> Check:
    """Return a check that also requires that the pod is not being deleted."""

    def checked(pod: Object) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            raise StateUnreachable(f"it is being deleted; {describe_pod(pod)}")
        check(pod)

    return checked


def terminating(pod: Object) -> None:
    """Require that the pod is being deleted."""
    if "deletionTimestamp" not in pod["metadata"]:
        raise NotYet(f"it is not being deleted; {describe_pod(pod)}")


def has_claims(pod: Object) -> None:
    """Require that all claims from templates have been generated."""
    wanted = {each["name"] for each in pod["spec"].get("resourceClaims", ()) if "resourceClaimTemplateName" in each}
    missing = wanted - {each["name"] for each in pod.get("status", {}).get("resourceClaimStatuses", ())}
    if missing:
        raise NotYet(f"no claim was generated for {', '.join(sorted(missing))}; {describe_pod(pod)}")


def scheduled(pod: Object) -> None:
    """Require that the pod is bound to a node."""
    if not pod["spec"].get("nodeName"):
        raise NotYet(describe_pod(pod))


def unscheduled(pod: Object) -> None:
    """Require that the pod is not bound to a node."""
    if pod["spec"].get("nodeName"):
        raise StateUnreachable(f"it was bound to node {pod['spec']['nodeName']}; {describe_pod(pod)}")
    pending(pod)


def unschedulable(because: str) -> Check:
    """Return a check that the scheduler reports the pod as unschedulable with this text in its message."""

    def check(pod: Object) -> None:
        unscheduled(pod)
        found = [each.get("message", "") for each in _unschedulable(pod)]
        if not any(because in each for each in found):
            raise NotYet(describe_pod(pod))

    return check


def disrupted(reason: str) -> Check:
    """Return a check that the pod has the condition DisruptionTarget with this reason."""

    def check(pod: Object) -> None:
        conditions = pod.get("status", {}).get("conditions", ())
        found = [each.get("reason", "") for each in conditions if _is_true(each, "DisruptionTarget")]
        if reason not in found:
            raise NotYet(f"reasons of DisruptionTarget: {', '.join(found) or 'none'}; {describe_pod(pod)}")

    return check


def restarted(container: str, before: int) -> Check:
    """Return a check that the container runs, and has been restarted more than `before` times."""

    def check(pod: Object) -> None:
        for each in pod.get("status", {}).get("containerStatuses", ()):
            if each["name"] == container and each["restartCount"] > before and "running" in each["state"]:
                return
        raise NotYet(describe_pod(pod))

    return check


def health_of(pod: Object, container: str, claim: str = "") -> list[Object]:
    """Return the health entries in the status of a container, for one claim or for all."""
    statuses = [each for each in pod.get("status", {}).get("containerStatuses", ()) if each["name"] == container]
    claims = [entry for each in statuses for entry in each.get("allocatedResourcesStatus", ())]
    return [each for one in claims if claim in ("", one["name"]) for each in one.get("resources", ())]


def has_health(container: str, claim: str, health: str) -> Check:
    """Return a check that the status reports this health for each device that the container has from the claim."""

    def check(pod: Object) -> None:
        found = [each.get("health", "no value") for each in health_of(pod, container, claim)]
        if set(found) != {health}:
            raise NotYet(f"health of {claim} in its status: {', '.join(found) or 'none'}; {describe_pod(pod)}")

    return check


def other_than(uid: str) -> Check:
    """Return a check that the pod has another UID, and runs."""

    def check(pod: Object) -> None:
        if pod["metadata"]["uid"] == uid:
            raise NotYet(f"still the old pod: {describe_pod(pod)}")
        running(pod)

    return check


def _unschedulable(pod: Object) -> list[Object]:
    conditions = pod.get("status", {}).get("conditions", ())
    return [each for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"]


def _is_true(condition: Object, kind: str) -> bool:
    return (condition["type"], condition["status"]) == (kind, "True")


def running_containers(pod: Object) -> list[str]:
    """Return the names of the containers that run now, except for init containers that ended."""
    status = pod.get("status", {})
    every = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return [str(each["name"]) for each in every if "running" in each.get("state", {})]
