"""The status of pods: claims for extended resources, health and metadata of devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed
from testbed.vocabulary.checked_sets import NONE
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.world import World

Make = Callable[..., World]
MAPPINGS = [{"containerName": "c", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}]


@pytest.fixture
def pod(world: Make) -> Callable[..., Pod]:
    def make(**status: Any) -> Pod:
        here = world()
        kube: Any = here.kube
        kube.react = lambda _kube: None
        kube.put("Pod", "p", "here", spec={"containers": [{"name": "c"}]}, status=status)
        return Pod(here, "here", "p")

    return make


def _with_health(*health: str) -> Any:
    resources = [{"resourceID": "x", "health": each, "message": f"it is {each}"} for each in health]
    return [
        {
            "name": "c",
            "state": {"running": {}},
            "allocatedResourcesStatus": [{"name": "claim:mine", "resources": resources}],
        }
    ]


def test_a_pod_without_extended_resources_has_no_claim_for_them(pod: Callable[..., Pod]) -> None:
    plain = pod()
    assert (plain.extended_claim, plain.extended_requests) == (None, NONE)
    assert plain.container("c").extended_devices == NONE


def test_a_pod_has_a_claim_for_its_extended_resources(pod: Callable[..., Pod]) -> None:
    asking = pod(extendedResourceClaimStatus={"resourceClaimName": "special", "requestMappings": MAPPINGS})
    results = [
        {"request": f"container-{i}-request-0", "driver": "d", "pool": "n", "device": f"gpu-{i}"} for i in (0, 1)
    ]
    kube: Any = asking.world.kube
    kube.put("ResourceClaim", "special", "here", status={"allocation": {"devices": {"results": results}}})
    assert asking.extended_claim
    assert asking.extended_claim.name == "special"
    assert asking.extended_requests == {("c", "example.com/gpu", "container-0-request-0")}
    assert asking.container("c").extended_devices == {Device("d", "n", "gpu-0")}


def test_the_health_of_a_device_is_waited_for(pod: Callable[..., Pod]) -> None:
    container = pod(containerStatuses=_with_health("Unhealthy")).container("c")
    assert container.should_have_health("mine", "Unhealthy") is container
    assert container.health_messages == ("it is Unhealthy",)


@pytest.mark.parametrize(
    ("health", "claim", "seen"),
    [
        (("Healthy", "Unknown"), "mine", "Healthy, Unknown"),
        ((), "mine", "none"),
        (("Healthy",), "other", "none"),
    ],
)
def test_another_health_does_not_count(pod: Callable[..., Pod], health: tuple[str, ...], claim: str, seen: str) -> None:
    with pytest.raises(NotObserved, match=f"last seen: health of claim:{claim} in its status: {seen}"):
        pod(containerStatuses=_with_health(*health)).container("c").should_have_health(claim, "Healthy")


def test_the_metadata_of_a_container(pod: Callable[..., Pod], monkeypatch: pytest.MonkeyPatch) -> None:
    container = pod().container("c")
    file = "resourceclaims/mine/gpu/gpu.dra-testbed.example-metadata.json"
    text = '{"apiVersion": "metadata.resource.k8s.io/v1beta1", "metadata": {"name": "mine", "uid": "u"}}'

    def exec_(_namespace: str, _pod: str, command: list[str], **_: Any) -> str:
        return text if command[0] == "cat" else f"{file}\n"

    monkeypatch.setattr(container.pod.world.kube, "exec", exec_)
    assert container.metadata_files == {file}
    assert container.metadata("resourceclaims/mine/gpu").claim == ("", "mine", "u")
    with pytest.raises(
        DriverFailed, match=f"has no device metadata file resourceclaims/mine/other/(.|\n)*last seen: {file}"
    ):
        container.metadata("resourceclaims/mine/other")
