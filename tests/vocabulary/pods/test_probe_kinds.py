"""What containers show through each kind of probe, and which devices that means."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed, NothingToJudge
from testbed.models.driver.devices import Identity
from testbed.models.driver.probe import Probe
from testbed.vocabulary.checked_sets import NONE
from testbed.vocabulary.pods.container import Container
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.scenario import Scenario, new_scenario
from testbed.vocabulary.world import World
from tests.fakes.cluster import DRIVER
from tests.vocabulary.conftest import RUNS, kube_of

Make = Callable[..., World]
FIRST, SECOND = "pod-with-cats/container0", "pod-with-cats/container1"


def _with_probe(world: World, identity: str = "", **probe: Any) -> World:
    """Return the world with a probe, and an attribute that identifies devices or none."""
    spec = world.driver_file.spec
    told = Identity(attribute=identity, scope="node") if identity else None
    devices = spec.devices.model_copy(update={"identity": told})
    update = {"probe": Probe.model_validate_json(json.dumps(probe)), "devices": devices}
    return replace(world, driver_file=world.driver_file.model_copy(update={"spec": spec.model_copy(update=update)}))


def _two_owners(scenario: Scenario) -> tuple[Container, Container]:
    """Return two containers of one pod, each with a device of its own."""
    scenario.apply("claims/two-cats.yaml")
    first, second = scenario.pod("pod-with-cats").should_run().containers("container0", "container1")
    return first, second


def _print(here: World, container: str, text: str) -> None:
    kube: Any = here.kube
    kube.outputs[container] = text


def test_a_set_is_compared_between_containers(world: Make) -> None:
    here = _with_probe(world(), env=r"^CARDS=(?P<set>\S+)$")
    with new_scenario(here, "CLAIM-001") as scenario:
        first, second = _two_owners(scenario)
        _print(here, FIRST, "CARDS=1,2\n")
        _print(here, SECOND, "CARDS=3\n")
        assert first.seen_devices == first.devices
        assert second.seen_devices == second.devices
        _print(here, SECOND, "CARDS=2,3\n")
        assert second.seen_devices == first.devices | second.devices


def test_the_cpus_of_a_container_are_identities(world: Make) -> None:
    here = _with_probe(world(), identity="index", cpuset=True)
    kube: Any = here.kube
    for slice_ in [each for key, each in kube.objects.items() if key[0] == "ResourceSlice"]:
        for index, device in enumerate(slice_["spec"]["devices"]):
            device["attributes"]["index"] = {"int": index}
    with new_scenario(here, "CLAIM-001") as scenario:
        first, second = _two_owners(scenario)
        (device,) = first.devices
        number = device.name.removeprefix("gpu-")
        _print(here, FIRST, f"Cpus_allowed_list:\t{number}\n")
        assert first.seen_devices == first.devices
        kube.objects["Pod", scenario.namespace, "pod-with-cats"]["spec"]["containers"][1]["resources"] = {}
        _print(here, SECOND, "Cpus_allowed_list:\t3,17\n")
        assert second.seen_devices == NONE
        _print(here, SECOND, f"Cpus_allowed_list:\t{number},3\n")
        assert second.seen_devices == first.devices


@pytest.mark.parametrize(("code", "seen"), [(0, 1), (1, 0)])
def test_an_exit_code_shows_the_devices_of_the_container(world: Make, code: int, seen: int) -> None:
    here = _with_probe(world(), command=["smi"])
    with new_scenario(here, "CLAIM-001") as scenario:
        first, _ = _two_owners(scenario)
        _print(here, FIRST, f"\nexit code {code}\n")
        kube: Any = here.kube
        kube.codes[FIRST] = code
        assert len(first.seen_devices) == seen


def test_metadata_files_name_the_devices(pod: Callable[..., Pod]) -> None:
    plain = pod(RUNS)
    reader = replace(plain, world=_with_probe(plain.world, metadata=True))
    devices = [{"driver": driver, "pool": "rack/1", "name": "gpu-0"} for driver in (DRIVER, "other.example")]
    content = {"apiVersion": "metadata.resource.k8s.io/v1beta1", "requests": [{"devices": devices}]}
    kube_of(plain).outputs["p/c"] = json.dumps(content) * 2
    assert reader.container("c").seen_devices == frozenset({Device(DRIVER, "rack/1", "gpu-0")})
    kube_of(plain).outputs["p/c"] = "{"
    with pytest.raises(DriverFailed, match="is not JSON"):
        _ = reader.container("c").seen_devices


def test_what_a_container_without_a_claim_could_reach_has_a_probe_of_its_own(pod: Callable[..., Pod]) -> None:
    plain = pod(RUNS)
    probe: Any = {"env": "^A=(?P<name>.+)$", "without": {"networkInterface": "^(?P<name>nic.)$"}}
    kube = kube_of(plain)
    kube.outputs["p/c"] = "eth0\nlo\n"
    container = replace(plain, world=_with_probe(plain.world, **probe)).container("c")
    assert container.seen_devices == NONE
    assert container.reachable_devices == NONE
    assert [call[2][-1] for call in kube.exec_calls] == ["env", "/sys/class/net"]


def test_a_probe_for_others_that_shows_nothing_of_a_claim_judges_nothing(world: Make) -> None:
    here = _with_probe(world(), env="^A=(?P<name>.+)$", without={"networkInterface": "^(?P<name>gpu-.)$"})
    with new_scenario(here, "CLAIM-001") as scenario:
        first, _ = _two_owners(scenario)
        (device,) = first.devices
        _print(here, FIRST, f"eth0\n{device.name}\n")
        assert first.reachable_devices == first.devices
        _print(here, FIRST, "eth0\n")
        with pytest.raises(
            NothingToJudge, match="shows no device in container container0 of pod pod-with-cats, which has one"
        ):
            _ = first.reachable_devices
