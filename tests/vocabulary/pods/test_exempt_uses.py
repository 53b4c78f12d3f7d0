"""Pods with a use that the driver is exempt from run with their devices, or are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.drivers.published.slices import Device
from testbed.vocabulary.checked_sets import NONE
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.pods.exempt_uses import require_devices, running_or_refused
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.pods.pod_states import running_containers
from testbed.waiting import NotYet
from tests.fakes.cluster import DRIVER
from tests.vocabulary.conftest import RUNS, kube_of

GPU = {"driver": DRIVER, "pool": "node-1", "name": "gpu-0"}
ONE, OTHER = Device("d", "node-1", "gpu-0"), Device("d", "node-1", "gpu-1")
WAITING: dict[str, Any] = {
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c"}]},
    "status": {"phase": "Pending"},
}


def _container(*seen: Device) -> Any:
    return SimpleNamespace(
        name="c", pod=SimpleNamespace(name="p"), devices=frozenset({ONE}), seen_devices=frozenset(seen)
    )


@pytest.mark.parametrize("reason", ["FailedPrepareDynamicResources", "FailedCreatePodSandBox"])
def test_an_event_says_that_a_pod_is_refused(reason: str) -> None:
    running_or_refused(lambda: [{"reason": reason, "message": "only one pod may use the claim"}])(WAITING)


def test_a_container_that_cannot_be_created_is_refused() -> None:
    waiting = {"name": "c", "state": {"waiting": {"reason": "CreateContainerError"}}}
    running_or_refused(list)({**WAITING, "status": {"phase": "Pending", "containerStatuses": [waiting]}})


@pytest.mark.parametrize(
    "states",
    [
        {"state": {"waiting": {"reason": "RunContainerError"}}},
        {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"reason": "StartError"}}},
    ],
)
def test_a_container_that_the_runtime_cannot_start_is_refused(states: dict[str, Any]) -> None:
    status = {"phase": "Pending", "containerStatuses": [{"name": "c", **states}]}
    running_or_refused(list)({**WAITING, "status": status})


@pytest.mark.parametrize(
    "event", [{"reason": "Scheduled", "message": "assigned"}, {"reason": "Failed", "message": "Error: ErrImagePull"}]
)
def test_a_pod_that_only_waits_is_not_refused(event: dict[str, Any]) -> None:
    with pytest.raises(NotYet, match="no event says why"):
        running_or_refused(lambda: [event])(WAITING)


def test_a_container_with_its_device_and_others_lacks_none() -> None:
    require_devices([_container(ONE), _container(ONE, OTHER)])


def test_a_container_without_devices_lacks_none() -> None:
    require_devices([SimpleNamespace(name="c", devices=frozenset())])  # type: ignore[list-item]  # its probe must not run


@pytest.mark.parametrize("seen", [(), (OTHER,)])
def test_a_container_that_runs_without_its_device_fails_the_driver(seen: tuple[Device, ...]) -> None:
    with pytest.raises(
        NotObserved, match=r"container c of pod p to see the devices .*\n  last seen: it runs without gpu-0"
    ) as failed:
        require_devices([_container(*seen)])
    assert failed.value.by_driver


def test_only_running_containers_are_asked(pod: Callable[..., Pod]) -> None:
    ended = {"name": "early", "state": {"terminated": {"exitCode": 0}}}
    statuses = {"initContainerStatuses": [ended], "containerStatuses": [{"name": "c", "state": {"running": {}}}]}
    assert running_containers({"status": statuses}) == ["c"]
    assert running_containers(pod().object) == []


def test_a_pod_without_a_claim_runs_without_devices_or_is_refused(pod: Callable[..., Pod]) -> None:
    refused = {"name": "c", "state": {"waiting": {"reason": "CreateContainerError"}}}
    assert pod(refused, phase="Pending").should_run_or_be_refused().reachable_devices == NONE

    running = pod(RUNS).should_run_or_be_refused()
    assert running.reachable_devices == NONE
    kube_of(running).outputs["p/c"] = json.dumps(
        {"apiVersion": "metadata.resource.k8s.io/v1beta1", "requests": [{"devices": [GPU]}]}
    )
    assert [each.name for each in running.reachable_devices] == ["gpu-0"]


def test_a_pod_that_runs_after_a_refusal_is_asked(pod: Callable[..., Pod]) -> None:
    delayed = pod({"name": "c", "state": {"waiting": {"reason": "CreateContainerError"}}}, phase="Pending")
    kube = kube_of(delayed)
    kube.outputs["p/c"] = json.dumps(
        {"apiVersion": "metadata.resource.k8s.io/v1beta1", "requests": [{"devices": [GPU]}]}
    )

    now = {"phase": "Running", "containerStatuses": [RUNS]}

    def start(target: Any, _change: Any, **_options: Any) -> None:
        kube.put("Pod", "p", "here", spec=target["spec"], metadata={"uid": "one"}, status=now)

    kube.patch = start
    assert [each.name for each in delayed.should_run_or_be_refused().reachable_devices] == ["gpu-0"]
