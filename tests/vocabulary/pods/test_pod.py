from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from testbed.errors import NodesUnderPressure, WaitTimeout
from testbed.vocabulary import budgets
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.pods.pod_list import Pods
from testbed.vocabulary.pods.workloads import pods_of
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World
from tests.vocabulary.conftest import RUNS, kube_of


def _report(pod: Pod, reason: str, message: str) -> None:
    about = {"kind": "Pod", "name": pod.name}
    kube_of(pod).put(
        "Event", f"{reason}.1", "here", type="Warning", reason=reason, message=message, involvedObject=about
    )


def test_an_event_is_waited_for(pod: Callable[..., Pod]) -> None:
    waiting = pod()
    _report(waiting, "Scheduled", "not allowed")
    _report(waiting, "FailedPrepare", "it is not allowed to use it")
    assert waiting.should_have_event("FailedPrepare", "not allowed") is waiting


@pytest.mark.parametrize(("reason", "message"), [("FailedPrepare", "something else"), ("Scheduled", "not allowed")])
def test_another_event_does_not_count(pod: Callable[..., Pod], reason: str, message: str) -> None:
    waiting = pod()
    _report(waiting, reason, message)
    with pytest.raises(NotObserved, match=f"last seen: event {reason}: {message}"):
        waiting.should_have_event("FailedPrepare", "not allowed")


@pytest.mark.parametrize(
    "message",
    [
        "NodePrepareResources failed for ResourceClaim mine: sharing.interval is wrong",
        "NodePrepareResources: rpc error: code = Unknown desc = sharing.interval is wrong",
    ],
)
def test_a_driver_fails_to_prepare_one_claim_or_answers_the_call_with_an_error(
    pod: Callable[..., Pod], message: str
) -> None:
    refused = pod()
    _report(refused, "FailedPrepareDynamicResources", f"Failed to prepare dynamic resources: {message}")
    assert refused.should_fail_to_prepare("mine", because="sharing.interval") is refused
    with pytest.raises(
        NotObserved, match=r"have an event that its driver failed to prepare claim mine: …sharing\.mode…"
    ):
        refused.should_fail_to_prepare("mine", because="sharing.mode")


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("FailedPrepareDynamicResources", "NodePrepareResources failed for ResourceClaim mine-2: no such device"),
        ("FailedPrepareDynamicResources", "NodePrepareResources skipped 1 ResourceClaims"),
        ("FailedPrepareDynamicResources", "NodePrepareResources: rpc error: code = Unavailable desc = no socket"),
        ("FailedPrepareDynamicResources", "NodePrepareResources: rpc error: code = DeadlineExceeded desc = late"),
        ("FailedPrepareDynamicResources", "DRA driver d.example.com is not registered"),
        ("Failed", "NodePrepareResources failed for ResourceClaim mine: no such device"),
    ],
)
def test_other_events_are_no_prepare_error_of_the_claim(pod: Callable[..., Pod], reason: str, message: str) -> None:
    waiting = pod()
    _report(waiting, reason, message)
    with pytest.raises(NotObserved, match="that its driver failed to prepare claim mine\n"):
        waiting.should_fail_to_prepare("mine")


@pytest.mark.parametrize(
    "message",
    [
        "prepare dynamic resources: DRA driver d.example.com is not registered",
        "prepare dynamic resources: NodePrepareResources: rpc error: code = Unavailable desc = connection error: x",
    ],
)
def test_a_pod_waits_for_a_driver_that_is_not_registered_or_does_not_answer(
    pod: Callable[..., Pod], message: str
) -> None:
    waiting = pod()
    _report(waiting, "FailedPrepareDynamicResources", f"Failed to prepare dynamic resources: {message}")
    assert waiting.should_wait_for_its_driver() is waiting


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (
            "FailedPrepareDynamicResources",
            "fetch ResourceClaim c: no relationship found between node 'n' and this object",
        ),
        ("FailedPrepareDynamicResources", "NodePrepareResources: rpc error: code = Internal desc = it is broken"),
        ("FailedPrepareDynamicResources", "NodePrepareResources failed for ResourceClaim mine: no such device"),
        ("Failed", "DRA driver d.example.com is not registered"),
    ],
)
def test_other_events_do_not_mean_that_the_driver_is_unavailable(
    pod: Callable[..., Pod], reason: str, message: str
) -> None:
    waiting = pod()
    _report(waiting, reason, message)
    with pytest.raises(
        (NotObserved, WaitTimeout), match="have an event that its driver is not registered or does not answer"
    ):
        waiting.should_wait_for_its_driver()


NO = "NodePrepareResources failed for ResourceClaim mine: no such device"
Again = Callable[[Pod], Pod]
AGAIN = [
    lambda pod: pod.should_have_event_again("FailedPrepareDynamicResources", "failed for ResourceClaim mine"),
    lambda pod: pod.should_fail_to_prepare_again("mine", because="no such device"),
]


def _retry(pod: Pod, **event: Any) -> None:
    """Make the kubelet retry after a sync was triggered, and report this event."""

    def react(kube: Any) -> None:
        if "annotations" in pod.object["metadata"]:
            kube.react = lambda _kube: None
            _report(pod, "FailedPrepareDynamicResources", NO)
            kube.objects["Event", "here", "FailedPrepareDynamicResources.1"].update(event)

    kube_of(pod).react = react


@pytest.mark.parametrize("again", AGAIN)
@pytest.mark.parametrize("counted", [{"count": 2}, {"series": {"count": 2}}])
def test_an_event_occurs_again_after_a_triggered_sync(
    pod: Callable[..., Pod], again: Again, counted: dict[str, Any]
) -> None:
    refused = pod()
    _report(refused, "FailedPrepareDynamicResources", NO)
    _retry(refused, **counted)
    assert again(refused) is refused
    assert "looked-at" in refused.object["metadata"]["annotations"]


@pytest.mark.parametrize("again", AGAIN)
def test_earlier_occurrences_do_not_count(pod: Callable[..., Pod], again: Again) -> None:
    refused = pod()
    _report(refused, "FailedPrepareDynamicResources", NO)
    _retry(refused, count=1)
    with pytest.raises(
        NotObserved, match=r"to have another event (.|\n)*the event has not occurred again; event FailedPrepare"
    ):
        again(refused)


@pytest.mark.parametrize("again", AGAIN)
def test_a_pod_that_runs_instead_of_failing_again(pod: Callable[..., Pod], again: Again) -> None:
    refused = pod()
    _report(refused, "FailedPrepareDynamicResources", NO)

    def run(kube: Any) -> None:
        kube.objects["Pod", "here", "p"]["status"].update(phase="Running", containerStatuses=[RUNS])

    kube_of(refused).react = run
    with pytest.raises(NotObserved, match=r"expected pod p to stay pending(.|\n)*Running on node-1"):
        again(refused)


def test_a_sync_is_triggered_after_an_authorizer_error_while_an_event_is_waited_for(pod: Callable[..., Pod]) -> None:
    waiting = pod()
    _report(waiting, "FailedPrepareDynamicResources", "no relationship found between node 'node-1' and this object")
    with pytest.raises(WaitTimeout):
        waiting.should_have_event("FailedPrepare", "not allowed")
    assert list(waiting.object["metadata"]["annotations"]) == ["looked-at"]
    waiting.world.kube.delete(waiting.object)
    with pytest.raises(WaitTimeout):  # no sync is triggered for a pod that is gone
        waiting.should_have_event("FailedPrepare", "not allowed")


def test_the_text_of_a_driver_is_not_taken_for_that_of_the_kubelet(pod: Callable[..., Pod]) -> None:
    waiting = pod()
    text = "NodePrepareResources failed for ResourceClaim c: pod p is not allowed to use ResourceClaim c"
    _report(waiting, "FailedPrepareDynamicResources", text)
    with pytest.raises(NotObserved):
        waiting.should_have_event("FailedPrepareDynamicResources", "is not allowed to use ResourceClaim")
    assert waiting.should_fail_to_prepare("c") is waiting


def test_the_schedulers_message_is_waited_for(pod: Callable[..., Pod]) -> None:
    refused = {"type": "PodScheduled", "status": "False", "message": "2 cannot allocate all claims"}
    assert pod(node="", conditions=[refused]).should_be_unschedulable("cannot allocate").node == ""
    with pytest.raises(NotObserved, match="given up before the budget"):
        pod(RUNS).should_be_unschedulable("cannot allocate")


def test_an_unschedulable_pod_is_explained_by_the_nodes_of_the_driver(pod: Callable[..., Pod]) -> None:
    refused = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes: 2 node(s) had untolerated taint(s)."}
    lost = pod(node="", conditions=[refused])
    pressed = {"conditions": [{"type": "DiskPressure", "status": "True", "message": "kubelet has disk pressure"}]}
    kube_of(lost).put("Node", "apart", spec={"taints": [{"key": "theirs", "effect": "NoSchedule"}]}, status=pressed)
    with pytest.raises(WaitTimeout, match="do not tolerate the taints of the nodes"):
        lost.should_run()
    kube_of(lost).put("Node", "node-2", spec={}, status=pressed)
    with pytest.raises(
        NodesUnderPressure,
        match="likely cause: node node-2 is short of disk: kubelet has disk pressure; the driver is not",
    ):
        lost.should_run()


def test_a_pod_that_stays_in_its_state(pod: Callable[..., Pod]) -> None:
    assert pod().should_stay_pending().phase == "Pending"
    assert pod(node="").should_stay_unscheduled().node == ""
    assert pod().should_be_scheduled().node == "node-1"
    assert pod(RUNS).should_stay_running().phase == "Running"


@pytest.mark.parametrize("verb", ["should_stay_pending", "should_stay_unscheduled"])
def test_a_pod_that_runs_although_it_should_not(pod: Callable[..., Pod], verb: str) -> None:
    with pytest.raises(NotObserved, match=r"expected pod p to stay(.|\n)*Running on node-1(.|\n)*less than the budget"):
        getattr(pod(RUNS), verb)()


def test_a_pod_that_ends_although_it_should_run(pod: Callable[..., Pod]) -> None:
    running = pod(RUNS)
    kube_of(running).react = lambda kube: kube.objects["Pod", "here", "p"]["status"].update(phase="Failed")
    with pytest.raises(NotObserved, match="last seen: Failed on node-1"):
        running.should_stay_running()


def test_a_pod_stays_unbound_for_its_budget(pod: Callable[..., Pod], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "STAYS_UNBOUND", replace(budgets.STAYS_UNBOUND, minimum=0))
    assert pod(node="").should_stay_unbound().node == ""
    with pytest.raises(NotObserved, match="without a node"):
        pod(RUNS).should_stay_unbound()


def test_a_pod_is_disrupted_for_a_reason(pod: Callable[..., Pod]) -> None:
    target = {"type": "DisruptionTarget", "status": "True", "reason": "Tainted"}
    ended = pod(RUNS, conditions=[target])
    assert ended.should_be_disrupted("Tainted") is ended
    with pytest.raises(NotObserved, match="reasons of DisruptionTarget: Tainted"):
        ended.should_be_disrupted("Full")
    with pytest.raises(NotObserved, match="reasons of DisruptionTarget: none"):
        pod(RUNS, conditions=[{**target, "status": "False"}]).should_be_disrupted("Tainted")


def test_a_pod_has_ended(pod: Callable[..., Pod]) -> None:
    assert pod(phase="Failed").should_end().phase == "Failed"
    with pytest.raises(NotObserved, match="expected pod p to end"):
        pod(RUNS).should_end()


def test_a_deleted_pod_is_gone(pod: Callable[..., Pod]) -> None:
    pod(RUNS).delete().should_be_gone()


def test_a_pod_that_is_not_removed_blames_the_driver(pod: Callable[..., Pod]) -> None:
    held = pod(RUNS)
    kube_of(held).finalizers["p"] = 1
    with pytest.raises(NotObserved, match=r"only when the driver has unprepared its claims(.|\n)*Running on node-1"):
        Pods([held]).delete().should_be_gone()


def test_a_pod_on_a_dead_node_does_not_blame_the_driver(pod: Callable[..., Pod]) -> None:
    held = pod(RUNS)
    dead = {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}
    kube_of(held).put("Node", "node-1", spec={}, status={"conditions": [dead]})
    kube_of(held).finalizers["p"] = 1
    with pytest.raises(WaitTimeout, match=r"node-1 is not Ready: Kubelet stopped posting node status"):
        held.delete().should_be_gone()


def test_a_forced_deletion_has_no_grace_period(pod: Callable[..., Pod], monkeypatch: pytest.MonkeyPatch) -> None:
    forced, asked = pod(RUNS), list[Any]()
    monkeypatch.setattr(kube_of(forced), "delete", lambda each, **how: asked.append((each["metadata"]["name"], how)))
    forced.delete(by_force=True)
    assert asked == [("p", {"grace": 0})]


def test_a_terminating_pod_stays(pod: Callable[..., Pod]) -> None:
    held = pod(RUNS)
    with pytest.raises(NotObserved, match="it is not being deleted"):
        held.should_stay_terminating()
    kube_of(held).objects["Pod", "here", "p"]["metadata"]["deletionTimestamp"] = "now"
    assert held.should_stay_terminating() is held
    kube_of(held).react = lambda kube: kube.objects.pop(("Pod", "here", "p"), None)
    with pytest.raises(NotObserved, match="last seen: there is no pod p"):
        held.should_stay_terminating()


def test_a_sync_is_triggered_until_the_pod_recovers(pod: Callable[..., Pod]) -> None:
    waiting = pod()
    kube = kube_of(waiting)

    def react(_kube: Any) -> None:
        if "annotations" in kube.objects["Pod", "here", "p"]["metadata"]:
            kube.objects["Pod", "here", "p"]["status"] = {"phase": "Running", "containerStatuses": [RUNS]}

    kube.react = react
    assert waiting.should_recover().phase == "Running"
    with pytest.raises(NotObserved, match="expected pod p to recover and run"):
        pod().should_recover()


def test_a_replaced_pod_has_another_uid(pod: Callable[..., Pod]) -> None:
    assert pod(RUNS).should_be_replaced("two").uid == "one"
    with pytest.raises(NotObserved, match="still the old pod"):
        pod(RUNS).should_be_replaced("one")


def test_a_sync_is_triggered_by_an_annotation(pod: Callable[..., Pod]) -> None:
    before = pod().trigger_sync().object["metadata"]["annotations"]
    assert list(before) == ["looked-at"]


def test_generated_claims_are_waited_for(pod: Callable[..., Pod]) -> None:
    waiting = pod()
    assert waiting.should_have_claims().claims == {}
    spec = kube_of(waiting).objects["Pod", "here", "p"]["spec"]
    spec["resourceClaims"] = [{"name": "mine", "resourceClaimTemplateName": "t"}]
    with pytest.raises(NotObserved, match="no claim was generated for mine"):
        waiting.should_have_claims()


def test_pods_of_a_controller_are_found_by_their_label(pod: Callable[..., Pod]) -> None:
    here = pod().world
    kube: Any = here.kube
    for name, more in {"b": {}, "a": {}, "old": {"deletionTimestamp": "now"}}.items():
        kube.put("Pod", name, "here", spec={}, metadata={"labels": {"app": "web"}, **more})
    assert [each.name for each in pods_of(here, "here", "web", 2)] == ["a", "b"]
    with pytest.raises(WaitTimeout, match=r"3 pods of workload web(.|\n)*there are 2 pods"):
        pods_of(here, "here", "web", 3)


def test_a_refused_prepare_is_the_drivers_where_the_pod_has_to_run(pod: Callable[..., Pod]) -> None:
    refused = pod()
    _report(refused, "FailedPrepareDynamicResources", "NodePrepareResources failed for ResourceClaim c: no")
    with pytest.raises(NotObserved) as run:
        refused.should_run()
    assert run.value.by_driver
    with pytest.raises(NotObserved) as unschedulable:
        refused.should_be_unschedulable("cannot allocate")
    assert not unschedulable.value.by_driver


@pytest.mark.parametrize(
    ("printed", "sees"),
    [("", "no device"), ("GPU_DEVICE_GPU_0_UUID=node-1-uuid-1\n", "gpu-1 of node-1")],
)
def test_a_pod_that_runs_although_its_driver_has_to_refuse_is_described_with_its_devices(
    pod: Callable[..., Pod], printed: str, sees: str
) -> None:
    running = pod(RUNS)
    kube_of(running).outputs["p/c"] = printed
    kube_of(running).put("Event", "other", "here", reason="Scheduled", involvedObject={"kind": "Pod", "name": "p"})
    expected = f"the pod runs, and sees {sees}; no device is allocated to it"
    with pytest.raises(NotObserved, match=f"not to run, because its driver has to refuse a claim(.|\n)*{expected}"):
        running.should_fail_to_prepare("c")
    with pytest.raises(NotObserved, match=f"expected pod p to stay pending(.|\n)*{expected}"):
        running.should_stay_pending()


def test_a_pod_is_bound_without_a_prepared_claim(pod: Callable[..., Pod]) -> None:
    assert pod().should_be_scheduled().node == "node-1"
    with pytest.raises(NotObserved, match="expected pod p to be scheduled"):
        pod(node="").should_be_scheduled()


def test_a_sync_is_triggered_after_an_authorizer_error(pod: Callable[..., Pod]) -> None:
    waiting = pod()
    _report(waiting, "FailedPrepareDynamicResources", "no relationship found between node 'node-1' and this object")
    kube = kube_of(waiting)

    def react(it: Any) -> None:
        if it.objects["Pod", "here", "p"]["metadata"].get("annotations"):
            it.objects["Pod", "here", "p"]["status"] = {"phase": "Running", "containerStatuses": [RUNS]}

    kube.react = react
    assert waiting.should_run().phase == "Running"


def test_no_sync_is_triggered_after_another_error(pod: Callable[..., Pod]) -> None:
    waiting = pod()
    _report(waiting, "FailedPrepareDynamicResources", "is not registered")
    with pytest.raises(NotObserved):
        waiting.should_run()
    assert "annotations" not in waiting.object["metadata"]


def test_a_pod_is_deleted_with_its_grace_or_by_force(pod: Callable[..., Pod], monkeypatch: pytest.MonkeyPatch) -> None:
    graces: list[int | None] = []
    found = pod(RUNS)
    monkeypatch.setattr(kube_of(found), "delete", lambda _target, *, grace: graces.append(grace))
    found.delete()
    found.delete(by_force=True)
    assert graces == [None, 0]


@pytest.mark.parametrize("fault", ["", "no-env"])
def test_a_pod_that_may_stay_pending_must_not_run_without_its_devices(world: Callable[..., World], fault: str) -> None:
    with new_scenario(world(fault), "LIFE-051") as scenario:
        scenario.apply("basic/claim-by-name.yaml")
        pod = scenario.pod("pod")
        if not fault:
            assert pod.should_not_run_without_devices() is pod
            return
        with pytest.raises(NotObserved, match=r"run only with its devices\n  last seen: it runs, and sees no device"):
            pod.should_not_run_without_devices()


def test_a_pod_that_stays_pending_is_not_judged_by_its_devices(pod: Callable[..., Pod]) -> None:
    pending = pod()
    assert pending.should_not_run_without_devices() is pending
