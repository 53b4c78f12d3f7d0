"""What a pod's state has to be for a word to be fulfilled. Pure: each check returns, or raises NotYet or NeverComes with what was seen."""

from __future__ import annotations

from collections.abc import Callable

from testbed.kube.client import Object
from testbed.vocabulary.observing.diagnosis import describe_pod
from testbed.vocabulary.observing.observation import StateUnreachable
from testbed.waiting import NotYet

Check = Callable[[Object], None]


def running(pod: Object) -> None:
    """All its containers run."""
    status = pod.get("status", {})
    started = [each["name"] for each in status.get("containerStatuses", ()) if "running" in each.get("state", {})]
    if status.get("phase") in ("Succeeded", "Failed"):
        raise StateUnreachable(describe_pod(pod))
    if len(started) < len(pod["spec"]["containers"]):
        raise NotYet(describe_pod(pod))


def ended(pod: Object) -> None:
    """All its containers have ended, and none will be started again."""
    if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
        raise NotYet(describe_pod(pod))


def succeeded(pod: Object) -> None:
    """All its containers have ended with 0."""
    ended(pod)
    if pod["status"]["phase"] == "Failed":
        raise StateUnreachable(describe_pod(pod))


def pending(pod: Object) -> None:
    """None of its containers was ever started."""
    status = pod.get("status", {})
    started = [
        each["name"]
        for each in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
        if "waiting" not in each.get("state", {"waiting": {}})
    ]
    if status.get("phase", "Pending") != "Pending" or started:
        raise NotYet(describe_pod(pod))


def staying(check: Check) -> Check:
    """A state in which nobody has asked for its end."""

    def stays(pod: Object) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            raise StateUnreachable(f"somebody has asked for its end; {describe_pod(pod)}")
        check(pod)

    return stays


def ending(pod: Object) -> None:
    """Somebody has asked for its end."""
    if "deletionTimestamp" not in pod["metadata"]:
        raise NotYet(f"nobody has asked for its end; {describe_pod(pod)}")


def has_claims(pod: Object) -> None:
    """The claims that it wants from templates have been made."""
    wanted = {each["name"] for each in pod["spec"].get("resourceClaims", ()) if "resourceClaimTemplateName" in each}
    missing = wanted - {each["name"] for each in pod.get("status", {}).get("resourceClaimStatuses", ())}
    if missing:
        raise NotYet(f"no claim was made for {', '.join(sorted(missing))}; {describe_pod(pod)}")


def unplaced(pod: Object) -> None:
    """The scheduler has found no node for it, as far as anybody knows."""
    if pod["spec"].get("nodeName"):
        raise StateUnreachable(f"the scheduler gave it to node {pod['spec']['nodeName']}; {describe_pod(pod)}")
    pending(pod)


def unschedulable(because: str) -> Check:
    """The scheduler has said that no node will do, in these words."""

    def check(pod: Object) -> None:
        unplaced(pod)
        said = [each.get("message", "") for each in _refusals(pod)]
        if not any(because in each for each in said):
            raise NotYet(describe_pod(pod))

    return check


def disrupted(reason: str) -> Check:
    """Its status says that somebody ends it, and for this reason."""

    def check(pod: Object) -> None:
        conditions = pod.get("status", {}).get("conditions", ())
        said = [each.get("reason", "") for each in conditions if _is_true(each, "DisruptionTarget")]
        if reason not in said:
            raise NotYet(f"its status says {', '.join(said) or 'nothing'} of its end; {describe_pod(pod)}")

    return check


def started_again(container: str, before: int) -> Check:
    """The container runs, and has been started more than `before` times."""

    def check(pod: Object) -> None:
        for each in pod.get("status", {}).get("containerStatuses", ()):
            if each["name"] == container and each["restartCount"] > before and "running" in each["state"]:
                return
        raise NotYet(describe_pod(pod))

    return check


def health_of(pod: Object, container: str, claim: str = "") -> list[Object]:
    """What a container's status says of the health of its devices, of one claim or of all."""
    statuses = [each for each in pod.get("status", {}).get("containerStatuses", ()) if each["name"] == container]
    told = [told for each in statuses for told in each.get("allocatedResourcesStatus", ())]
    return [each for one in told if claim in ("", one["name"]) for each in one.get("resources", ())]


def has_health(container: str, claim: str, health: str) -> Check:
    """The status says so of each device that the container has from the claim."""

    def check(pod: Object) -> None:
        told = [each.get("health", "nothing") for each in health_of(pod, container, claim)]
        if set(told) != {health}:
            raise NotYet(f"its status says {', '.join(told) or 'nothing'} of {claim}; {describe_pod(pod)}")

    return check


def other_than(uid: str) -> Check:
    """It is a successor of the pod with that UID, under the same name, and runs."""

    def check(pod: Object) -> None:
        if pod["metadata"]["uid"] == uid:
            raise NotYet(f"still the old one: {describe_pod(pod)}")
        running(pod)

    return check


def _refusals(pod: Object) -> list[Object]:
    conditions = pod.get("status", {}).get("conditions", ())
    return [each for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"]


def _is_true(condition: Object, kind: str) -> bool:
    return (condition["type"], condition["status"]) == (kind, "True")
