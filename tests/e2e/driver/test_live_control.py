"""Live control as its users meet it: commands on this host, a driver in its pod, and what Kubernetes makes of it."""

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
SOON = Budget("soon", 60, "the kubelet tries again about once a minute, and sooner when the pod is changed")
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
    gpus = folders.data("manifests") / "hardware/gpus.yaml"  # one slice, and nothing else in it
    yield bring_up(effective(None, {"name": NAME, "nodes": 1, "hardware": gpus}), Silent(), ephemeral=True)
    tear_down(NAME, Silent())


@pytest.fixture(scope="module")
def kubectl(testbed: Testbed) -> Kubectl:
    return Kubectl(testbed)


@pytest.fixture
def hardware(testbed: Testbed) -> Iterator[Callable[..., str]]:
    """The command; afterwards all is as the hardware file says."""

    def do(*words: str) -> str:
        argv = [sys.executable, "-m", "testbed.cli.main", "hardware", *words, "--name", testbed.name]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    yield do
    do("fault", "clear")
    do("restore")


@pytest.fixture
def pod(kubectl: Kubectl) -> Iterator[Callable[[str], Callable[[], Any]]]:
    """Make a pod with a device; what is given says how it is, and has its kubelet look at it again."""
    made: list[str] = []

    def make(name: str) -> Callable[[], Any]:
        made.append(name)
        kubectl("apply", "-f", "-", stdin=POD.format(name=name))

        def look() -> Any:
            kubectl("annotate", "pod", name, "--overwrite", f"looked={os.urandom(4).hex()}", check=False)
            return json.loads(kubectl("get", "pod", name, "-o", "json", "--ignore-not-found").stdout or "{}")

        return look

    yield make
    for name in made:
        kubectl("delete", "pod/" + name, "resourceclaim/" + name, "--ignore-not-found")


def published(testbed: Testbed) -> dict[str, Any]:
    mine = "spec.driver=gpu.dra-testbed.example"
    (slice_,) = testbed.kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=mine)
    return dict(slice_)


def names(slice_: dict[str, Any]) -> list[str]:
    return [device["name"] for device in slice_["spec"]["devices"]]


def phase(state: Any) -> Any:
    return state.get("status", {}).get("phase")


def test_an_unplugged_device_is_one_write_to_one_slice(testbed: Testbed, hardware: Callable[..., str]) -> None:
    before = published(testbed)
    assert "done" in hardware("unplug", "gpu-3")
    assert eventually_true(lambda: "gpu-3" not in names(published(testbed)), SOON)
    after = published(testbed)
    assert len(names(after)) == len(names(before)) - 1
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def test_a_taint_ends_the_pod_that_has_the_device(
    hardware: Callable[..., str], pod: Callable[[str], Callable[[], Any]], testbed: Testbed
) -> None:
    look = pod("tainted")
    assert eventually_true(lambda: phase(look()) == "Running", SOON)
    hardware("taint", device_of(testbed, "tainted"), "example.com/broken:NoExecute")
    assert eventually_true(lambda: look() == {}, SOON)


def test_health_is_in_the_pods_status(
    hardware: Callable[..., str], pod: Callable[[str], Callable[[], Any]], testbed: Testbed
) -> None:
    look = pod("ill")
    assert eventually_true(lambda: phase(look()) == "Running", SOON)
    hardware("health", device_of(testbed, "ill"), "unhealthy", "--message", "ECC errors")

    def shown() -> bool:
        ((status,),) = [each.get("allocatedResourcesStatus", [{}]) for each in look()["status"]["containerStatuses"]]
        return any((each["health"], each.get("message")) == ("Unhealthy", "ECC errors") for each in status["resources"])

    assert eventually_true(shown, SOON)


def test_a_call_fails_three_times_with_an_event_and_then_the_pod_runs(
    hardware: Callable[..., str], pod: Callable[[str], Callable[[], Any]], kubectl: Kubectl
) -> None:
    hardware("fault", "prepare", "--times", "3", "--code", "UNAVAILABLE", "--message", "the bus does not answer")
    look = pod("refused")
    assert eventually_true(lambda: phase(look()) == "Running", SOON)
    told = kubectl("get", "events", "--field-selector", "reason=FailedPrepareDynamicResources").stdout
    assert "code = Unavailable desc = the bus does not answer" in told
    entries = [each for node in json.loads(hardware("journal", "-o", "json")) for each in node["entries"]]
    assert [each["event"] for each in entries].count("fault") == 3


def device_of(testbed: Testbed, claim: str) -> str:
    found = testbed.kube.get("resource.k8s.io/v1", "ResourceClaim", claim, "default")
    return str(found["status"]["allocation"]["devices"]["results"][0]["device"])
