from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed import process
from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed, NothingToJudge, UsageError, WaitTimeout
from testbed.models.driver.probe import Probe
from testbed.vocabulary.checked_sets import NONE, NothingToCompare
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.pods.container import Container
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.pods.probe_command import as_container, in_container
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
    for node in ("node-1", "node-2"):
        kube.objects["ResourceSlice", "default", f"slice-{node}"]["spec"]["driver"] = "another.example"
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        pod = scenario.pod("first").should_run()
        _print(here, "first/cat", "DEVICE=gpu-0\n")

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


def test_a_node_whose_slices_are_missing_is_the_cause_that_a_device_is_not_published(here: World) -> None:
    kube: Any = here.kube
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        pod = scenario.pod("first").should_run()
        _print(here, "first/cat", "DEVICE=gpu-9\n")
        del kube.objects["ResourceSlice", "default", f"slice-{pod.node}"]

        with pytest.raises(DriverFailed) as failed:
            _ = pod.seen_devices
        assert f"likely cause: {DRIVER} publishes no ResourceSlice on {pod.node} any more" in str(failed.value)
        assert "spec.probe" not in str(failed.value)


def test_a_probe_that_exits_non_zero_is_an_answer(here: World, tmp_path: Path) -> None:
    kube: Any = here.kube
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        pod = scenario.pod("first").should_run()
        _print(here, "first/cat", "DEVICE=gpu-1\n")
        kube.codes["first/cat"] = 2
        assert {device.name for device in pod.seen_devices} == {"gpu-1"}
        _print(here, "first/cat", "No devices were found\n")
        assert pod.seen_devices == NONE
        (result,) = here.probe_results.of(scenario.namespace)
        assert result.summary.startswith(
            "the probe printed 1 line in container cat of pod first and exited with code 2"
        )
        scenario.capture(tmp_path)
        assert (tmp_path / "probe/first.cat.txt").read_text() == "No devices were found\n\n--- exit code 2\n"


@pytest.mark.parametrize("code", [126, 127])
def test_a_probe_that_cannot_be_started_in_a_container_with_devices_is_an_error(here: World, code: int) -> None:
    kube: Any = here.kube
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        pod = scenario.pod("first").should_run()
        _print(here, "first/cat", "")
        kube.codes["first/cat"] = code
        with pytest.raises(UsageError, match=r"env of spec\.probe could not be started in container cat of pod first"):
            _ = pod.seen_devices


def _from_driver(world: World) -> World:
    """Return a world whose driver file says that the driver adds the program of the probe."""
    file = world.driver_file
    probe = file.probe.model_copy(update={"program_from_driver": True})
    return replace(world, driver_file=file.model_copy(update={"spec": file.spec.model_copy(update={"probe": probe})}))


def test_a_probe_that_the_driver_should_have_added_shows_no_device(here: World) -> None:
    world = _from_driver(here)
    kube: Any = world.kube
    with new_scenario(world, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        pod = scenario.pod("first").should_run()
        _print(world, "first/cat", "")
        kube.codes["first/cat"] = 127
        assert pod.seen_devices == NONE


def test_a_pod_whose_probe_the_driver_should_have_added_blames_the_driver(pod: Callable[..., Pod]) -> None:
    waiting = pod({"name": "c", "state": {"terminated": {"exitCode": 127, "reason": "Error"}}}, phase="Failed")
    found = kube_of(waiting).objects["Pod", "here", "p"]["spec"]["containers"][0]
    found["command"] = as_container(waiting.world.driver_file.probe.argv)
    waiting = replace(waiting, world=_from_driver(waiting.world))
    with pytest.raises(NotObserved, match="the driver did not add the program"):
        waiting.should_succeed()


def test_a_probe_that_cannot_be_started_shows_nothing_in_a_container_without_devices(pod: Callable[..., Pod]) -> None:
    plain = pod(RUNS)
    kube_of(plain).outputs["p/c"] = ""
    kube_of(plain).codes["p/c"] = 127
    assert plain.container("c").seen_devices == NONE


@pytest.mark.parametrize(
    "argv",
    [("ls", "/no/such/file*"), ("sh", "-c", "echo $0; exit 3"), ("false",), ("echo", "$HOME"), ("echo", "$$ $(A) $$$")],
)
def test_the_command_of_a_container_succeeds_with_any_answer(argv: tuple[str, ...]) -> None:
    expanded = [word.replace("$$", "$") for word in as_container(argv)]  # as Kubernetes does
    done = process.run(expanded, check=False)
    assert done.code == 0
    assert done.stdout == process.run(argv, check=False).stdout
    assert process.run(in_container(argv), check=False).code == process.run(argv, check=False).code


@pytest.mark.parametrize("command", [in_container(["env"]), tuple(as_container(["env"]))])
def test_variables_whose_names_no_shell_accepts_are_shown(command: tuple[str, ...]) -> None:
    seen = process.run(command, env={"PATH": os.environ["PATH"], "DEVICE_my-claim": "0-1"}).stdout
    assert "DEVICE_my-claim=0-1" in seen.splitlines()
    assert command[0] == "env"  # bash keeps these variables, the shell of busybox does not


def test_the_command_of_a_container_fails_if_the_probe_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    expanded = [word.replace("$$", "$") for word in as_container(["no-such-program"])]
    assert process.run(expanded, check=False).code == 127
    assert process.run(in_container([str(tmp_path / "data")]), check=False).code == 126


def test_a_pod_whose_probe_cannot_be_started_blames_no_driver(pod: Callable[..., Pod]) -> None:
    ended = {"name": "c", "state": {"terminated": {"exitCode": 127, "reason": "Error"}}}
    waiting = pod(ended, phase="Failed")
    with pytest.raises(NotObserved):
        waiting.should_succeed()
    found = kube_of(waiting).objects["Pod", "here", "p"]["spec"]["containers"][0]
    found["command"] = as_container(waiting.world.driver_file.probe.argv)
    with pytest.raises(WaitTimeout, match=r"the container cannot start the program of spec\.probe"):
        waiting.should_succeed()


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


def test_the_restarts_of_an_unknown_container_are_not_zero(pod: Callable[..., Pod]) -> None:
    assert pod(RUNS).container("c").restarts == 0
    with pytest.raises(NothingToCompare, match="expected the status of pod p to have its container other"):
        _ = pod(RUNS).container("other").restarts


def test_what_a_claim_adds_to_a_container(pod: Callable[..., Pod]) -> None:
    found = pod(RUNS)
    plain, workload = found.container("plain"), found.container("c")
    kube_of(found).outputs["p/plain"] = "HOSTNAME=q\nKEY=1\n\n/dev/null\n"
    kube_of(found).outputs["p/c"] = "HOSTNAME=p\nKEY=1\n\n/dev/null\n/dev/gpu\n"
    assert workload.additions_to(plain) == {"/dev/gpu"}
    kube_of(found).outputs["p/c"] = "HOSTNAME=p\nKEY=1\n\n/dev/null\n"
    with pytest.raises(NothingToJudge, match="the claim adds no environment variable"):
        workload.additions_to(plain)


def test_the_variables_of_a_claim_can_be_set_by_another_pod(pod: Callable[..., Pod]) -> None:
    found = pod(RUNS)
    plain, workload = found.container("plain"), found.container("c")
    kube_of(found).outputs["p/plain"] = "HOSTNAME=q\nPATH=/bin\nKEY=1\n"
    kube_of(found).outputs["p/c"] = "HOSTNAME=p\nPATH=/bin\nKEY=$2\1=3\nNEW=a b\n"
    added = [{"name": "KEY", "value": "$$2\n=3"}, {"name": "NEW", "value": "a b"}]
    assert workload.variables_beside(plain) == added
    with pytest.raises(NothingToJudge, match="the claim adds no environment variable"):
        plain.variables_beside(plain)


def test_variables_of_a_claim_that_does_not_exist(pod: Callable[..., Pod], monkeypatch: pytest.MonkeyPatch) -> None:
    uid, new = "0a1b-2c3d", "ffff-eeee"
    monkeypatch.setattr(Container, "_claims", [SimpleNamespace(uid=uid)])
    monkeypatch.setattr("testbed.vocabulary.pods.container.uuid.uuid4", lambda: new)
    found = pod(RUNS)
    plain, workload = found.container("plain"), found.container("c")
    kube_of(found).outputs["p/plain"] = "PATH=/bin\n"
    kube_of(found).outputs["p/c"] = f"CPUS_{uid}=1-2\nCPUS_0A1B_2C3D=3\nCLAIM=0a1b2c3d\n"
    assert workload.variables_beside(plain, of_unknown_claim=True) == [
        {"name": f"CPUS_{new}", "value": "1-2"},
        {"name": "CPUS_FFFF_EEEE", "value": "3"},
        {"name": "CLAIM", "value": "ffffeeee"},
    ]


def test_the_variables_of_a_container_are_read_in_a_shell(
    pod: Callable[..., Pod], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = pod(RUNS)
    monkeypatch.setenv("LINES_OF_A_TEST", "one\ntwo=2")
    monkeypatch.setattr(kube_of(found), "exec", lambda _namespace, _pod, argv, **_: process.run(argv).stdout)
    assert found.container("c")._variables()["LINES_OF_A_TEST"] == "one\ntwo=2"


def test_the_environment_distinguishes_values_without_showing_them(pod: Callable[..., Pod]) -> None:
    found = pod(RUNS)
    kube_of(found).outputs["p/c"] = "HOSTNAME=p\nKEY=Long\1/and\1more==\n\n/dev/null\n/mnt/a=b\n"
    environment = found.container("c").environment

    assert found.container("c").environment_names == {"KEY", "/dev/null", "/mnt/a"}
    assert {"/dev/null", "/mnt/a=b"} < environment
    assert not [each for each in environment if "Long" in each or "more" in each]

    kube_of(found).outputs["p/c"] = "HOSTNAME=q\nKEY=Long\1/and\1less==\n\n/dev/null\n/mnt/a=b\n"
    assert len(environment - found.container("c").environment) == 1
