"""Update the fake driver while pods use its devices and while pods are created and deleted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.bringup import Testbed, bring_up, tear_down
from testbed.models.config import effective
from testbed.progress import Silent
from testbed.waiting import Budget, NotYet, eventually
from tests.e2e.conftest import POD, WORKLOAD, Kubectl

NAMESPACE, DAEMON_SET = "dra-testbed-driver", "daemonset/fake-gpu-driver"
ROLLED = Budget("update done", 30, "a driver stops and starts within seconds")
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec:
  spec:
    devices:
      requests: [{name: gpu, exactly: {deviceClassName: gpu.dra-testbed.example}}]
"""
PODS = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: user}}}}
spec:
  # With 0 the API server deletes the pod at once, and its device is allocated again before the kubelet has unprepared it.
  terminationGracePeriodSeconds: 1
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: gpu}}]
  containers:
  - name: main
    image: {image}
    command: [sleep, infinity]
    resources: {{claims: [{{name: gpu}}]}}
"""


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    """Return a testbed with its default drivers."""
    name = "test-rolling"
    tear_down(name, Silent())
    yield bring_up(effective(None, {"name": name, "nodes": 1}), Silent(), ephemeral=True)
    tear_down(name, Silent())


@pytest.fixture
def user(kubectl: Kubectl) -> Iterator[dict[str, Any]]:
    """Start a pod with a GPU; return the state of its container before the update."""
    kubectl("apply", "-f", "-", stdin=TEMPLATE)
    yield start(kubectl, "user")
    kubectl("delete", "pod", "-l", "app=user", "--wait")


def start(kubectl: Kubectl, name: str) -> dict[str, Any]:
    """Start a pod with a GPU; return the state of its container when it runs."""
    kubectl("apply", "-f", "-", stdin=PODS.format(name=name, image=WORKLOAD))
    return eventually(lambda: container(kubectl, name), f"pod {name} to run", POD)


def container(kubectl: Kubectl, name: str) -> dict[str, Any]:
    (status,) = get(kubectl, "pod", name)["status"].get("containerStatuses") or [{}]
    if "running" not in status.get("state", {}):
        raise NotYet(f"its container is {status.get('state')}")
    # Not its health: the kubelet reports Unknown until the new driver has sent the health.
    return {key: status[key] for key in ("containerID", "restartCount", "ready")}


def get(kubectl: Kubectl, *what: str) -> dict[str, Any]:
    return dict(json.loads(kubectl("get", *what, "-o", "json").stdout))


def start_update(kubectl: Kubectl) -> int:
    """Start an update; return the generation that the controller has to observe."""
    kubectl("-n", NAMESPACE, "rollout", "restart", DAEMON_SET)
    return int(get(kubectl, "-n", NAMESPACE, DAEMON_SET)["metadata"]["generation"])


def is_rolled(kubectl: Kubectl, generation: int) -> bool:
    status = get(kubectl, "-n", NAMESPACE, DAEMON_SET)["status"]
    old = len(driver_pods(kubectl)) - status["desiredNumberScheduled"]
    counts = (status.get("updatedNumberScheduled"), status.get("numberAvailable"))
    wanted = status["desiredNumberScheduled"]
    return status["observedGeneration"] >= generation and counts == (wanted, wanted) and old == 0


def driver_pods(kubectl: Kubectl) -> set[str]:
    found = get(kubectl, "-n", NAMESPACE, "pods", "-l", "app=fake-gpu-driver")["items"]
    return {each["metadata"]["uid"] for each in found}


def failed_prepares(kubectl: Kubectl) -> list[str]:
    found = get(kubectl, "events", "--field-selector", "reason=FailedPrepareDynamicResources")["items"]
    return [each["message"] for each in found]


def slices(kubectl: Kubectl) -> set[str]:
    return {each["metadata"]["uid"] for each in get(kubectl, "resourceslices")["items"]}


def test_with_surge_pods_keep_their_devices_and_new_pods_start_at_any_time(
    kubectl: Kubectl, user: dict[str, Any]
) -> None:
    before, published, began = driver_pods(kubectl), slices(kubectl), time.monotonic()
    generation, at_once = start_update(kubectl), 0
    while not is_rolled(kubectl, generation):
        assert time.monotonic() - began < ROLLED.seconds, "the update does not end"
        at_once = max(at_once, len(driver_pods(kubectl)))
        start(kubectl, "new")
        kubectl("delete", "pod", "new", "--wait")
    start(kubectl, "new")

    assert time.monotonic() - began < ROLLED.seconds
    assert at_once == 2, "the old and the new driver did not run at the same time"
    assert not before & driver_pods(kubectl)
    assert container(kubectl, "user") == user
    assert slices(kubectl) == published
    assert failed_prepares(kubectl) == []


def test_without_surge_pods_keep_their_devices_and_new_pods_start_after_the_update(
    kubectl: Kubectl, user: dict[str, Any]
) -> None:
    before, published = driver_pods(kubectl), slices(kubectl)
    no_surge = {"spec": {"updateStrategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}}
    kubectl("-n", NAMESPACE, "patch", DAEMON_SET, "--type=merge", "-p", json.dumps(no_surge))
    generation = start_update(kubectl)

    def rolled() -> None:
        if not is_rolled(kubectl, generation):
            raise NotYet(f"driver pods {driver_pods(kubectl)}")

    eventually(rolled, "the update", ROLLED)
    start(kubectl, "new")
    assert not before & driver_pods(kubectl)
    assert container(kubectl, "user") == user
    assert slices(kubectl) == published
