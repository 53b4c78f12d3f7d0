from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed
from testbed.models.driver.probe import Probe
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World
from tests.fakes.cluster import DRIVER
from tests.vocabulary.conftest import RUNS, kube_of

BY_NAME = {"command": ["env"], "lines": r"^DEVICE=(?P<name>\S+)$"}


@pytest.fixture
def here(world: Callable[..., World]) -> World:
    """Return a world whose probe shows names, which are the same on all nodes."""
    made = world()
    spec = made.driver_file.spec.model_copy(update={"probe": Probe.model_validate_json(json.dumps(BY_NAME))})
    return replace(made, driver_file=made.driver_file.model_copy(update={"spec": spec}))


def _print(here: World, container: str, text: str) -> None:
    kube: Any = here.kube
    kube.outputs[container] = text


def test_a_name_is_that_of_a_device_on_the_pods_node(here: World) -> None:
    with new_scenario(here, "REG-001") as scenario:
        scenario.apply("basic/one-pod-per-node.yaml")
        pods = scenario.daemonset("one-per-node").pods_on(["node-1", "node-2"]).should_run()
        for pod in pods:
            _print(here, f"{pod.name}/workload", "DEVICE=gpu-0\n")

        assert pods.seen_devices == pods.devices
        assert set().union(*pods.seen_devices.values()) == {
            Device(DRIVER, node, "gpu-0") for node in ("node-1", "node-2")
        }


def test_a_driver_that_publishes_nothing_may_have_another_name(here: World) -> None:
    kube: Any = here.kube
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        pod = scenario.pod("first").should_run()
        _print(here, "first/cat", "DEVICE=gpu-0\n")
        for node in ("node-1", "node-2"):
            kube.objects["ResourceSlice", "default", f"slice-{node}"]["spec"]["driver"] = "another.example"

        with pytest.raises(
            DriverFailed, match=r"check spec\.driver of the driver file: .*; drivers that do: another\.example"
        ):
            _ = pod.seen_devices


def test_a_name_that_is_not_published_is_reported(here: World) -> None:
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        pod = scenario.pod("first").should_run()
        _print(here, "first/cat", "DEVICE=gpu-9\n")

        with pytest.raises(DriverFailed, match="has a device with that name; published: gpu-0, gpu-1"):
            _ = pod.seen_devices


def test_a_container_is_restarted(pod: Callable[..., Pod]) -> None:
    running = pod(RUNS)
    kube = kube_of(running)
    kube.outputs["p/c"] = ""
    restarted = {**RUNS, "restartCount": 1}
    kube.react = lambda it: it.objects["Pod", "here", "p"]["status"].update(containerStatuses=[restarted])
    assert running.container("c").restart().restarts == 1
    assert "kill 1" in kube.exec_calls[0][2][-1]


def test_a_container_that_is_not_restarted(pod: Callable[..., Pod]) -> None:
    running = pod(RUNS)
    kube_of(running).outputs["p/c"] = ""
    with pytest.raises(NotObserved, match="expected pod p to have its container c restarted"):
        running.container("c").restart()


def test_the_devices_that_an_ended_container_printed(pod: Callable[..., Pod]) -> None:
    ended = pod(phase="Succeeded")
    kube_of(ended).log_texts["p/c"] = "GPU_DEVICE_GPU_0_UUID=node-2-uuid-1\n"
    assert ended.container("c").printed_devices == frozenset({Device("gpu.dra-testbed.example", "node-2", "gpu-1")})


def test_the_settings_of_a_container(pod: Callable[..., Pod]) -> None:
    found = pod(RUNS)
    kube_of(found).outputs["p/c"] = "HOSTNAME=p\nGPU_DEVICE_GPU_0_SHARING_INTERVAL=Long\n"

    assert found.container("c").settings == frozenset({"other"})


def test_the_environment_distinguishes_values_without_showing_them(pod: Callable[..., Pod]) -> None:
    found = pod(RUNS)
    kube_of(found).outputs["p/c"] = "HOSTNAME=p\nKEY=Long\1/and\1more==\n\n/dev/null\n/mnt/a=b\n"
    environment = found.container("c").environment

    assert found.container("c").environment_names == {"KEY", "/dev/null", "/mnt/a"}
    assert {"/dev/null", "/mnt/a=b"} < environment
    assert not [each for each in environment if "Long" in each or "more" in each]

    kube_of(found).outputs["p/c"] = "HOSTNAME=q\nKEY=Long\1/and\1less==\n\n/dev/null\n/mnt/a=b\n"
    assert len(environment - found.container("c").environment) == 1
