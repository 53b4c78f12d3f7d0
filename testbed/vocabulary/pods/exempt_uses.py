"""Waits for a pod that a driver may refuse, such as one that uses claims in a way that it is exempt from. `Pod` has the verb."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from testbed.kube import messages
from testbed.kube.client import Object
from testbed.vocabulary.observing.diagnosis import event_text
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.observing.prepare_errors import is_unknown_to_authorizer
from testbed.vocabulary.pods import pod_states
from testbed.vocabulary.pods.container import Container
from testbed.vocabulary.pods.probe_results import named_devices
from testbed.waiting import NotYet

_REFUSED = (messages.FAILED_PREPARE, messages.FAILED_SANDBOX)
_CONTAINER_REFUSED = {messages.CREATE_CONTAINER_ERROR, messages.RUN_CONTAINER_ERROR, messages.START_ERROR}


def running_or_refused(events: Callable[[], Iterable[Object]]) -> pod_states.Check:
    """Return the check that a pod runs, or that claims, sandbox or a container of it were refused."""

    def check(pod: Object) -> None:
        try:
            pod_states.running(pod)
        except NotYet as waiting:
            if not any(map(_is_refusal, events())) and not _has_refused_container(pod):
                raise NotYet(f"{waiting}; no event says why") from waiting

    return check


def require_devices(containers: Iterable[Container]) -> None:
    """Raise NotObserved if a running container lacks a device of a claim that it refers to."""
    for each in (one for one in containers if one.devices):
        lacking = frozenset(each.devices) - frozenset(each.seen_devices)
        if lacking:
            raise NotObserved(
                f"expected container {each.name} of pod {each.pod.name} to see the devices of the claims that it refers to, "
                f"or not to run\n  last seen: it runs without {named_devices(lacking)}",
                by_driver=True,
            )


def _is_refusal(event: Object) -> bool:
    return event.get("reason") in _REFUSED and not is_unknown_to_authorizer(event) and bool(event_text(event))


def _has_refused_container(pod: Object) -> bool:
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    states = [each.get(key, {}) for each in statuses for key in ("state", "lastState")]
    reasons = {one.get("reason") for each in states for one in each.values()}
    return not reasons.isdisjoint(_CONTAINER_REFUSED)
