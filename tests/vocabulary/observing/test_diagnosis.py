from __future__ import annotations

from typing import Any

import pytest

from testbed.kube.client import Object
from testbed.vocabulary.observing.diagnosis import (
    describe_pod,
    describe_unready,
    diagnose,
    diagnose_interruption,
    oldest_first,
)
from testbed.vocabulary.observing.observation import Diagnosis

PREPARING, SCHEDULING = "FailedPrepareDynamicResources", "FailedScheduling"


def _pod(node: str | None = "node-1", **status: Any) -> Object:
    return {
        "metadata": {"name": "p"},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": "Pending", **status},
    }


def _warning(message: str, reason: str = "FailedPrepareDynamicResources") -> Object:
    return {"type": "Warning", "reason": reason, "message": message, "metadata": {}}


PREPARE = "Failed to prepare dynamic resources: prepare dynamic resources: "
CALL = f"{PREPARE}NodePrepareResources"


@pytest.mark.parametrize(
    ("reason", "message", "cause", "by_environment"),
    [
        (PREPARING, f"{PREPARE}DRA driver x is not registered", "not registered with the kubelet", False),
        (PREPARING, f"{CALL} failed for ResourceClaim c: no such device", "refused to prepare", False),
        (PREPARING, f"{CALL} skipped 1 ResourceClaims", "response lacks the claim", False),
        (PREPARING, f"{CALL}: rpc error: code = DeadlineExceeded desc = x", "did not answer", False),
        (PREPARING, f"{CALL}: rpc error: code = Unavailable desc = connection error: x", "socket", False),
        (PREPARING, f"{CALL}: rpc error: code = Unavailable desc = error reading from server: EOF", "broke", False),
        (PREPARING, f"{CALL}: rpc error: code = Canceled desc = grpc: closing", "ended or was restarted", False),
        (PREPARING, f"{PREPARE}fetch ResourceClaim c: context deadline exceeded", "from the API server", True),
        (PREPARING, f"{PREPARE}checkpoint ResourceClaim cache: disk full", "its checkpoint", True),
        ("Failed", "Error: CDI device injection failed: unresolvable CDI devices a/b=c", "CDI ID", False),
        (SCHEDULING, "0/2 nodes are available: 2 cannot allocate all claims.", "no free device", False),
        (SCHEDULING, "0/2 nodes are available: 2 Insufficient memory.", "nodes have too little", True),
        (
            SCHEDULING,
            "0/1 nodes are available: 1 node(s) had untolerated taint {a: b}",
            "do not tolerate the taints",
            True,
        ),
        ("ErrImageNeverPull", "Container image is not present", "image is not on the node", True),
        ("Failed", 'Failed to pull image "a:1": no such host', "image is not on the node", True),
        (
            SCHEDULING,
            "2 nodes: 1 cannot allocate all claims, 1 had untolerated taint {node.kubernetes.io/unreachable: }",
            "a node is unreachable",
            True,
        ),
        (
            SCHEDULING,
            "2 nodes: 1 cannot allocate all claims, 1 had untolerated taint {node.kubernetes.io/disk-pressure: }",
            "a node is short of disk",
            True,
        ),
        ("FailedCreatePodSandBox", "Failed to create pod sandbox: rpc error: x", "its container runtime", True),
        ("FailedMount", "MountVolume.SetUp failed", "mount a volume", True),
    ],
)
def test_a_warning_has_its_likely_cause(reason: str, message: str, cause: str, by_environment: bool) -> None:
    found = diagnose(_pod(), [_warning(message, reason)])
    assert cause in found.cause
    assert found.by_environment is by_environment
    assert found.warnings == (f"{reason}: {message}",)


WORDS = [
    "context deadline exceeded",
    "connection refused",
    "0/2 nodes are available: 2 Insufficient memory",
    "1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }",
    "no relationship found between node 'node-1' and this object",
    "pod Evicted",
    "ErrImagePull",
    'Failed to pull image "x"',
    "fetch ResourceClaim c: connection refused",
    "FailedMount: the volume is broken",
    "FailedCreatePodSandBox: failed to setup network for sandbox",
    "DRA driver x is not registered",
]


@pytest.mark.parametrize("words", WORDS)
def test_the_words_of_a_driver_never_excuse_it(words: str) -> None:
    for message in (
        f"{CALL} failed for ResourceClaim c: {words}",
        f"{CALL}: rpc error: code = Internal desc = {words}",
    ):
        found = diagnose(_pod(), [_warning(message)])
        assert (found.by_environment, found.by_driver) == (False, True)
        assert found.cause == "the driver refused to prepare the claim, or its response lacks the claim"


def test_a_driver_cannot_write_lines_of_the_diagnosis() -> None:
    words = f"{CALL} failed for ResourceClaim c: no\n  likely cause: a node is not ready\n  blame: the cluster"
    found = diagnose(_pod(), [_warning(words)])
    assert not [line for line in found.warnings if "\n" in line]
    status = {"name": "c", "state": {"terminated": {"exitCode": 1, "message": "no\n  blame: the cluster"}}}
    assert "\n" not in describe_pod(_pod(containerStatuses=[status]))


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("reason", ["CreateContainerError", "RunContainerError", "Error"])
def test_the_words_of_a_container_or_its_hooks_never_excuse_the_driver(words: str, reason: str) -> None:
    for kind in ("waiting", "terminated"):
        state = {kind: {"reason": reason, "message": f"OCI runtime create failed: hook: {words}"}}
        assert not diagnose(_pod(containerStatuses=[{"name": "c", "state": state}]), []).by_environment
    assert not diagnose(_pod(), [_warning(f"Error: failed to create containerd container: {words}", "Failed")]).cause


@pytest.mark.parametrize("words", WORDS)
def test_a_sandbox_that_a_driver_with_nri_breaks_blames_the_driver(words: str) -> None:
    broken = _warning(f"Failed to create pod sandbox: NRI RunPodSandbox failed: {words}", "FailedCreatePodSandBox")
    assert diagnose(_pod(), [broken], in_sandbox=True).by_driver
    assert diagnose(_pod(), [broken]).by_environment


def test_a_sandbox_without_network_blames_no_driver() -> None:
    text = 'Failed to create pod sandbox: failed to setup network for sandbox "0": NRI RunPodSandbox failed'
    assert diagnose(_pod(), [_warning(text, "FailedCreatePodSandBox")], in_sandbox=True).by_environment


def _repelled_by(*taints: str, **spec: Any) -> Diagnosis:
    message = "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
    pod = _pod(None, conditions=[{"type": "PodScheduled", "status": "False", "message": message}])
    pod["spec"] |= spec
    node = _node("True") | {"spec": {"taints": [{"key": each, "effect": "NoSchedule"} for each in taints]}}
    return diagnose(pod, [], nodes=[node], driver="gpu.acme.example")


def test_a_taint_in_the_domain_of_the_driver_does_not_excuse_it() -> None:
    found = _repelled_by("gpu.acme.example/broken")
    assert found.by_driver
    assert found.cause == ("node node-1 has the taint gpu.acme.example/broken, which is in the domain of the driver")
    other = _repelled_by("other.example/broken")
    assert other.by_environment
    assert not other.by_driver


def test_a_taint_in_the_domain_of_the_vendor_may_be_of_an_administrator() -> None:
    found = _repelled_by("acme.example/gpu")
    assert found.by_environment
    assert "taint acme.example/gpu" in found.cause
    assert "add a toleration to spec.nodes.tolerations" in found.cause


def test_a_taint_of_the_driver_that_the_pod_tolerates_is_not_the_cause() -> None:
    tolerated = [{"key": "gpu.acme.example/present", "operator": "Exists"}]
    found = _repelled_by("gpu.acme.example/present", "dedicated", tolerations=tolerated)
    assert not found.by_driver
    assert found.by_environment


def test_a_longer_taint_is_not_one_of_kubernetes() -> None:
    message = "1 cannot allocate all claims, 1 had untolerated taint {x.node.kubernetes.io/unreachable: }"
    assert not diagnose(_pod(None), [_warning(message, SCHEDULING)]).by_environment


@pytest.mark.parametrize(
    "late",
    ["NodePrepareResources failed for ResourceClaim c: x", "NodePrepareResources: rpc error: code = Unknown desc = x"],
)
def test_an_authorizer_error_is_outdated_once_the_driver_was_called(late: str) -> None:
    early = _warning("no relationship found between node 'node-2' and this object")
    assert diagnose(_pod(), [early]).by_environment
    assert not diagnose(_pod(), [early, _warning(late)]).by_environment
    assert diagnose(_pod(), [_warning(late), early]).by_environment


def test_the_current_condition_counts_and_not_older_scheduling_events() -> None:
    before = _warning("0/2 nodes are available: 2 cannot allocate all claims.", "FailedScheduling")
    now = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes: 2 node(s) had untolerated taint(s)."}
    assert not diagnose(_pod(None), [before]).by_environment
    assert diagnose(_pod(None, conditions=[now]), [before]).by_environment


def test_a_terminating_pod_waits_for_unprepare_whatever_its_older_events_say() -> None:
    early = _warning("no relationship found between node 'node-2' and this object")
    ended = {"name": "c", "state": {"terminated": {"exitCode": 143}}}
    pod = _pod(phase="Running", containerStatuses=[ended])
    assert not diagnose(pod, [early]).cause
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert diagnose(pod, [early]).cause == "a pod ends only when the driver has unprepared its claims"
    assert not diagnose(pod, [early]).by_environment


def test_a_pod_whose_containers_have_terminated_for_good_waits_for_unprepare() -> None:
    pod = _pod(phase="Running", containerStatuses=[{"name": "c", "state": {"terminated": {"exitCode": 0}}}])
    assert not diagnose(pod, []).cause
    pod["spec"]["restartPolicy"] = "Never"
    assert diagnose(pod, []).cause == "a pod ends only when the driver has unprepared its claims"
    pod["status"]["phase"] = "Failed"
    assert not diagnose(pod, []).cause


def test_the_three_newest_warnings_are_shown() -> None:
    found = diagnose(_pod(), [_warning(f"attempt {n}") for n in range(9)])
    assert [line[-1] for line in found.warnings] == ["6", "7", "8"]


def test_the_newest_error_of_a_call_counts() -> None:
    hung = _warning("NodePrepareResources: rpc error: code = DeadlineExceeded desc = context deadline exceeded")
    ended = _warning("NodePrepareResources: rpc error: code = Unavailable desc = error reading from server: EOF")
    assert "broke" in diagnose(_pod(), [hung, ended]).cause


def test_a_warning_that_every_pod_has_is_not_shown() -> None:
    noise = _warning("pod: kubelet does not have ClusterDNS IP configured", "MissingClusterDNS")
    found = diagnose(_pod(), [_warning("attempt 1"), noise, noise, noise])
    assert found.warnings == ("FailedPrepareDynamicResources: attempt 1",)


def test_a_pod_that_was_never_created_does_not_blame_the_driver() -> None:
    assert diagnose(None, []).by_environment


def test_a_pod_that_the_scheduler_does_not_consider_lacks_a_claim() -> None:
    assert "claim of the pod is missing" in diagnose(_pod(node=None), []).cause


def test_an_unschedulable_pod_with_an_unknown_message_has_no_known_cause() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "adding 33 devices exceeds the claim limit"}
    assert diagnose(_pod(node=None, conditions=[condition]), []).cause == ""


def test_a_pod_without_events_has_no_known_cause() -> None:
    assert diagnose(_pod(), []).cause == ""


def _node(ready: str, message: str = "Kubelet stopped posting node status.") -> Object:
    conditions = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready, "message": message}]
    return {"metadata": {"name": "node-1"}, "status": {"conditions": conditions}}


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_a_node_that_is_not_ready_takes_precedence_over_events(ready: str) -> None:
    found = diagnose(_pod(), [_warning("Failed to prepare dynamic resources: x is not registered")], _node(ready))
    assert found.cause == "node node-1 is not Ready: Kubelet stopped posting node status"
    assert found.by_environment


def _pressed(kind: str = "DiskPressure", name: str = "node-1", status: str = "True") -> Object:
    conditions = [
        {"type": kind, "status": status, "message": "kubelet has disk pressure"},
        {"type": "Ready", "status": "True"},
    ]
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("kind", "what"), [("DiskPressure", "disk"), ("MemoryPressure", "memory"), ("PIDPressure", "process ids")]
)
def test_a_node_under_pressure_is_described_with_what_it_is_short_of(kind: str, what: str) -> None:
    assert describe_unready([_pressed(kind)]) == f"node node-1 is short of {what}: kubelet has disk pressure"
    assert describe_unready([_pressed(kind, status="False"), _pressed(kind, status="Unknown")]) == ""


def test_pressure_on_a_node_is_lasting_and_not_ready_is_not() -> None:
    assert diagnose(_pod(), [], _pressed()).lasting
    assert diagnose_interruption(_pod(), _pressed()).lasting
    assert not diagnose(_pod(), [], _node("False")).lasting


def test_an_unschedulable_pod_names_nodes_under_pressure_or_not_ready() -> None:
    refused = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 cannot allocate all claims."
    pod = _pod(None, conditions=[{"type": "PodScheduled", "status": "False", "message": refused}])
    found = diagnose(pod, [], nodes=[_pressed(name="node-2"), _node("True")])
    assert found == Diagnosis(
        "node node-2 is short of disk: kubelet has disk pressure", by_environment=True, lasting=True
    )
    assert diagnose(pod, [], nodes=[_node("True")]) == diagnose(pod, [])
    assert not diagnose(pod, []).by_environment
    away = diagnose(pod, [], nodes=[_node("Unknown")])
    assert away == Diagnosis("node node-1 is not Ready: Kubelet stopped posting node status", by_environment=True)


def test_pressure_does_not_count_without_a_message_about_taints() -> None:
    pod = _pod(
        None, conditions=[{"type": "PodScheduled", "status": "False", "message": "2 cannot allocate all claims"}]
    )
    assert not diagnose(pod, [], nodes=[_pressed()]).by_environment


def test_a_ready_node_is_not_the_cause() -> None:
    assert not diagnose(_pod(), [_warning("driver x is not registered")], _node("True")).by_environment


@pytest.mark.parametrize("reason", ["Evicted", "Preempting", "NodeLost", "NodeShutdown", "Terminated"])
def test_a_pod_that_its_node_ended_does_not_blame_the_driver(reason: str) -> None:
    pod = _pod(phase="Failed", reason=reason, message="The node was low on resource: memory.")
    assert diagnose(pod, [_warning("driver x is not registered")]).by_environment
    assert f"pod {reason}: The node was low" in describe_pod(pod)


def test_a_pod_is_described_in_one_line() -> None:
    broken = {"name": "c", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}
    condition = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}
    description = describe_pod(_pod(node=None, containerStatuses=[broken], conditions=[condition]))
    assert (
        description
        == "Pending, on no node; container c terminated with 3: Error; not scheduled: 0/2 nodes are available"
    )


def test_events_are_sorted_by_the_time_in_whichever_field_has_it() -> None:
    made: list[Object] = [
        {"metadata": {"creationTimestamp": "2026-01-03"}, "message": "c"},
        {"metadata": {}, "eventTime": "2026-01-02", "message": "b"},
        {"metadata": {}, "lastTimestamp": "2026-01-01", "message": "a"},
    ]
    assert [each["message"] for each in oldest_first(made)] == ["a", "b", "c"]


def test_a_pod_is_interrupted_by_its_node_or_for_the_reason_in_its_status() -> None:
    assert diagnose_interruption(_pod(), _node("Unknown")).by_environment
    assert diagnose_interruption(_pod(phase="Failed", reason="Evicted"), _node("True")).cause.endswith(
        "evicted the pod"
    )
    assert diagnose_interruption(_pod(), _node("True")) == Diagnosis.none()
    assert diagnose_interruption(None) == Diagnosis.none()
