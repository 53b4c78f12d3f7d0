"""Live control from end to end: commands on this host, a driver in its pod, and the effects in Kubernetes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from testbed import folders
from testbed.bringup import Testbed, bring_up, tear_down
from testbed.models.config import effective
from testbed.progress import Silent
from testbed.waiting import Budget, eventually_true
from tests.e2e.conftest import Kubectl

NAME = "test-live-control"
SOON = Budget("soon", 60, "the kubelet retries about once a minute, and sooner when the pod is changed")
POD = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}}}
spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu.dra-testbed.example}}}}]}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 0
  resourceClaims: [{{name: gpu, resourceClaimName: {name}}}]
  containers:
  - name: main
    image: localhost/dra-testbed/workload:1
    command: [sleep, infinity]
    resources: {{claims: [{{name: gpu}}]}}
"""


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    if os.geteuid() != 0:
        pytest.fail("these tests need root")
    tear_down(NAME, Silent())
    gpus = folders.data("manifests") / "hardware/gpus.yaml"  # publishes one slice
    yield bring_up(effective(None, {"name": NAME, "nodes": 1, "hardware": gpus}), Silent(), ephemeral=True)
    tear_down(NAME, Silent())


@pytest.fixture(scope="module")
def kubectl(testbed: Testbed) -> Kubectl:
    return Kubectl(testbed)


@pytest.fixture
def hardware(testbed: Testbed) -> Iterator[Callable[..., str]]:
    """Return a function that runs `dra-testbed hardware`; afterwards all changes are undone."""

    def do(*arguments: str) -> str:
        argv = [sys.executable, "-m", "testbed.cli.main", "hardware", *arguments, "--name", testbed.name]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    yield do
    do("fault", "clear")
    do("restore")


@pytest.fixture
def pod(kubectl: Kubectl) -> Iterator[Callable[[str], Callable[[], Any]]]:
    """Return a function that creates a pod with a device. It returns a function that triggers a sync and reads the pod."""
    made: list[str] = []

    def make(name: str) -> Callable[[], Any]:
        made.append(name)
        kubectl("apply", "-f", "-", stdin=POD.format(name=name))

        def sync_and_read() -> Any:
            kubectl("annotate", "pod", name, "--overwrite", f"sync={os.urandom(4).hex()}", check=False)
            return json.loads(kubectl("get", "pod", name, "-o", "json", "--ignore-not-found").stdout or "{}")

        return sync_and_read

    yield make
    for name in made:
        kubectl("delete", "pod/" + name, "resourceclaim/" + name, "--ignore-not-found")


def published(testbed: Testbed) -> dict[str, Any]:
    selector = "spec.driver=gpu.dra-testbed.example"
    (slice_,) = testbed.kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=selector)
    return dict(slice_)


def names(slice_: dict[str, Any]) -> list[str]:
    return [device["name"] for device in slice_["spec"]["devices"]]


def phase(state: Any) -> Any:
    return state.get("status", {}).get("phase")


def test_an_unplugged_device_causes_one_write_to_one_slice(testbed: Testbed, hardware: Callable[..., str]) -> None:
    before = published(testbed)
    assert "done" in hardware("unplug", "gpu-3")
    assert eventually_true(lambda: "gpu-3" not in names(published(testbed)), SOON)
    after = published(testbed)
    assert len(names(after)) == len(names(before)) - 1
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def test_a_taint_evicts_the_pod_that_uses_the_device(
    hardware: Callable[..., str], pod: Callable[[str], Callable[[], Any]], testbed: Testbed
) -> None:
    read = pod("tainted")
    assert eventually_true(lambda: phase(read()) == "Running", SOON)
    hardware("taint", device_of(testbed, "tainted"), "example.com/broken:NoExecute")
    assert eventually_true(lambda: read() == {}, SOON)


def test_device_health_is_in_the_pods_status(
    hardware: Callable[..., str], pod: Callable[[str], Callable[[], Any]], testbed: Testbed
) -> None:
    read = pod("unhealthy")
    assert eventually_true(lambda: phase(read()) == "Running", SOON)
    hardware("health", device_of(testbed, "unhealthy"), "unhealthy", "--message", "ECC errors")

    def shown() -> bool:
        ((status,),) = [each.get("allocatedResourcesStatus", [{}]) for each in read()["status"]["containerStatuses"]]
        return any((each["health"], each.get("message")) == ("Unhealthy", "ECC errors") for each in status["resources"])

    assert eventually_true(shown, SOON)


def test_a_pod_runs_after_three_failed_prepare_calls_with_events(
    hardware: Callable[..., str], pod: Callable[[str], Callable[[], Any]], kubectl: Kubectl
) -> None:
    hardware("fault", "prepare", "--times", "3", "--code", "UNAVAILABLE", "--message", "the bus does not answer")
    read = pod("refused")
    assert eventually_true(lambda: phase(read()) == "Running", SOON)
    events = kubectl("get", "events", "--field-selector", "reason=FailedPrepareDynamicResources").stdout
    assert "code = Unavailable desc = the bus does not answer" in events
    entries = [each for node in json.loads(hardware("journal", "-o", "json")) for each in node["entries"]]
    assert [each["event"] for each in entries].count("fault") == 3


def device_of(testbed: Testbed, claim: str) -> str:
    found = testbed.kube.get("resource.k8s.io/v1", "ResourceClaim", claim, "default")
    return str(found["status"]["allocation"]["devices"]["results"][0]["device"])
