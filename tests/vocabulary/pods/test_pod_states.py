from __future__ import annotations

from typing import Any

import pytest

from testbed.kube.client import Object
from testbed.vocabulary.observing.observation import StateUnreachable
from testbed.vocabulary.pods import pod_states
from testbed.waiting import NotYet

RUNS = {"name": "c", "state": {"running": {}}, "restartCount": 0}
WAITS = {"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}, "restartCount": 0}
ENDED = {"name": "c", "state": {"terminated": {"exitCode": 0}}, "restartCount": 0}


def _pod(*statuses: Object, node: str = "node-1", phase: str = "Pending", **status: Any) -> Object:
    spec: Object = {"containers": [{"name": "c"}], **({"nodeName": node} if node else {})}
    return {
        "metadata": {"name": "p", "uid": "one"},
        "spec": spec,
        "status": {"phase": phase, "containerStatuses": list(statuses), **status},
    }


def _refused(message: str) -> Object:
    return _pod(node="", conditions=[{"type": "PodScheduled", "status": "False", "message": message}])


@pytest.mark.parametrize(
    ("check", "pod"),
    [
        (pod_states.running, _pod(RUNS, phase="Running")),
        (pod_states.ended, _pod(ENDED, phase="Failed")),
        (pod_states.succeeded, _pod(ENDED, phase="Succeeded")),
        (pod_states.pending, _pod(WAITS)),
        (pod_states.pending, _pod()),
        (pod_states.unscheduled, _pod(node="")),
        (pod_states.scheduled, _pod()),
        (pod_states.unschedulable("all claims"), _refused("0/2 nodes: 2 cannot allocate all claims.")),
        (pod_states.restarted("c", 0), _pod({**RUNS, "restartCount": 1})),
        (pod_states.other_than("two"), _pod(RUNS, phase="Running")),
        (pod_states.has_claims, _pod()),
    ],
)
def test_a_state_that_is_reached(check: pod_states.Check, pod: Object) -> None:
    check(pod)


@pytest.mark.parametrize(
    ("check", "pod"),
    [
        (pod_states.running, _pod(WAITS)),
        (pod_states.ended, _pod(RUNS, phase="Running")),
        (pod_states.succeeded, _pod(RUNS, phase="Running")),
        (pod_states.pending, _pod(RUNS)),
        (pod_states.pending, _pod(ENDED)),
        (pod_states.pending, _pod(WAITS, initContainerStatuses=[RUNS])),
        (pod_states.pending, _pod(phase="Failed")),
        (pod_states.unschedulable("all claims"), _refused("0/2 nodes: 2 Insufficient memory.")),
        (pod_states.unschedulable("all claims"), _pod(node="")),
        (pod_states.restarted("c", 1), _pod({**RUNS, "restartCount": 1})),
        (pod_states.restarted("c", 0), _pod({**ENDED, "restartCount": 1})),
        (pod_states.restarted("d", 0), _pod({**RUNS, "restartCount": 1})),
        (pod_states.other_than("one"), _pod(RUNS, phase="Running")),
        (pod_states.other_than("two"), _pod(WAITS)),
        (pod_states.scheduled, _pod(node="")),
    ],
)
def test_a_state_that_may_come(check: pod_states.Check, pod: Object) -> None:
    with pytest.raises(NotYet, match=r"on node-1|on no node"):
        check(pod)


@pytest.mark.parametrize(
    ("check", "pod"),
    [
        (pod_states.running, _pod(ENDED, phase="Succeeded")),
        (pod_states.succeeded, _pod(ENDED, phase="Failed")),
        (pod_states.unscheduled, _pod()),
        (pod_states.unschedulable("all claims"), _pod()),
    ],
)
def test_a_state_that_can_no_longer_come(check: pod_states.Check, pod: Object) -> None:
    with pytest.raises(StateUnreachable, match="on node-1"):
        check(pod)


def test_a_claim_that_was_not_generated_is_named() -> None:
    pod = _pod(resourceClaimStatuses=[{"name": "made", "resourceClaimName": "p-made-x"}])
    pod["spec"]["resourceClaims"] = [
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "by-hand", "resourceClaimName": "c"},
    ]
    pod_states.has_claims(pod)
    pod["spec"]["resourceClaims"].append({"name": "late", "resourceClaimTemplateName": "t"})
    with pytest.raises(NotYet, match="no claim was generated for late"):
        pod_states.has_claims(pod)


def test_a_deleted_pod_does_not_keep_its_state() -> None:
    pod = _pod(RUNS, phase="Running")
    pod_states.not_deleted(pod_states.running)(pod)
    pod["metadata"]["deletionTimestamp"] = "now"
    with pytest.raises(StateUnreachable, match="it is being deleted; Running, terminating on node-1"):
        pod_states.not_deleted(pod_states.running)(pod)
