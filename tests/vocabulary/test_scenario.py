from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import ApiError, UsageError, WaitTimeout
from testbed.vocabulary import budgets
from testbed.vocabulary.driver.driver import Driver
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World
from testbed.waiting import Budget, set_patience

Make = Callable[..., World]


def _kube(world: World) -> Any:
    return world.kube


def _one_that_passes(here: World) -> None:
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        scenario.pods("first", "second").should_run()


def _one_that_fails(here: World) -> None:
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        raise AssertionError("wrong")


def test_a_scenario_has_a_labelled_namespace_of_its_own(world: Make) -> None:
    here = world()
    with new_scenario(here, "CLAIM-001") as one, new_scenario(here, "CLAIM-001") as other:
        assert one.namespace != other.namespace
        made = _kube(here).objects["Namespace", "default", one.namespace]
        assert here.owner.owns(made)
        assert made["metadata"]["labels"]["dra-testbed.example/requirement"] == "CLAIM-001"
        assert one.namespace.startswith("dra-claim-001-")


def test_pods_of_a_scenario_run_with_the_devices_of_their_claims(world: Make) -> None:
    with new_scenario(world(), "CLAIM-001") as scenario:
        scenario.apply("claims/two-cats.yaml")
        pod = scenario.pod("pod-with-cats").should_run()
        first, second = pod.containers("container0", "container1")
        assert len(pod.devices) == 2
        assert first.devices != second.devices
        assert first.seen_devices == first.devices
        assert second.seen_devices == second.devices


def test_a_container_that_sees_a_wrong_device_is_detected(world: Make) -> None:
    with new_scenario(world("share-one-device"), "CLAIM-001") as scenario:
        scenario.apply("claims/two-cats.yaml")
        first, second = scenario.pod("pod-with-cats").should_run().containers("container0", "container1")
        assert first.seen_devices == second.seen_devices
        assert second.seen_devices != second.devices


def test_all_objects_are_deleted_in_an_order_that_lets_drivers_unprepare(world: Make) -> None:
    here = world()
    with new_scenario(here, "REG-001") as scenario:
        scenario.apply("basic/one-pod-per-node.yaml")
        scenario.daemonset("one-per-node").pods_on(["node-1", "node-2"]).should_run()
    kinds = [each.split("/")[0] for each in _kube(here).deleted]
    assert kinds == ["DaemonSet", "Pod", "Pod", "ResourceClaimTemplate", "ServiceAccount", "Namespace"]
    assert not [key for key in _kube(here).objects if key[1] == scenario.namespace]


def test_a_claim_is_deleted_after_its_pods(world: Make) -> None:
    here = world()
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        scenario.pods("first", "second").should_run()
    deleted = _kube(here).deleted
    assert deleted.index("ResourceClaim/shared") > max(deleted.index("Pod/first"), deleted.index("Pod/second"))


@pytest.mark.parametrize("patience", [1.0, 2.5, 3.0, 10.0])
def test_toleration_seconds_are_longer_than_a_stay_and_shorter_than_the_wait_for_an_event(
    world: Make, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world()
    with new_scenario(here, "TAINT-024") as scenario:
        set_patience(patience)
        monkeypatch.setattr(budgets, "STAYS", Budget("state stays", 2, "test"))
        assert budgets.STAYS.effective_seconds + 1 < scenario.toleration_seconds < budgets.EVENT.effective_seconds
        assert isinstance(scenario.toleration_seconds, int)  # as the API requires


def test_all_objects_are_deleted_after_a_failure_too(world: Make) -> None:
    here = world()
    with pytest.raises(AssertionError, match="wrong"):
        _one_that_fails(here)
    assert {key[0] for key in _kube(here).objects} == {"Node", "ResourceSlice", "DeviceClass"}


def test_pods_that_never_end_blame_the_driver_and_the_namespace_is_still_deleted(world: Make) -> None:
    here = world("pods-never-end")
    with pytest.raises(NotObserved, match="pod first"):
        _one_that_passes(here)
    assert _kube(here).deleted[-1].startswith("Namespace/dra-share-001-")


def test_a_pod_that_does_not_run_is_reported_with_the_cause_and_its_last_state(world: Make) -> None:
    with new_scenario(world("no-pods-start"), "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        with pytest.raises(NotObserved) as raised:
            scenario.pods("first", "second").should_run()
    lines = str(raised.value).splitlines()
    assert lines[0] == "expected pod first to run"
    assert lines[1].startswith("  likely cause: the driver is not registered with the kubelet of this node")
    assert "Pending on node-1; container cat waiting: ContainerCreating" in lines[2]
    assert "DRA driver gpu.dra-testbed.example is not registered" in lines[3]


def test_a_missing_image_does_not_blame_the_driver(world: Make) -> None:
    with new_scenario(world("image-missing"), "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        with pytest.raises(WaitTimeout, match="the driver is not blamed for it"):
            scenario.pod("first").should_run()


def test_a_node_that_is_not_ready_does_not_blame_the_driver(world: Make) -> None:
    with new_scenario(world("node-away"), "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        with pytest.raises(WaitTimeout, match="node node-1 is not Ready"):
            scenario.pod("first").should_run()
        _kube(scenario.world).finalizers.clear()


def test_pods_on_a_dead_node_that_never_end_do_not_blame_the_driver(world: Make) -> None:
    with (
        pytest.raises(WaitTimeout, match=r"node node-1 is not Ready.*the driver is not blamed for it"),
        new_scenario(world("node-away"), "SHARE-001") as scenario,
    ):
        scenario.apply("sharing/two-pods-one-claim.yaml")


def test_a_daemonset_without_a_pod_on_a_dead_node_does_not_blame_the_driver(world: Make) -> None:
    here = world()
    with new_scenario(here, "REG-001") as scenario, pytest.raises(NotObserved, match="was not allocated on that node"):
        scenario.daemonset("one-per-node").pods_on(["node-1"])
    gone = {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}
    _kube(here).objects["Node", "default", "node-1"]["status"]["conditions"] = [gone]
    with new_scenario(here, "REG-001") as scenario, pytest.raises(WaitTimeout, match="node node-1 is not Ready"):
        scenario.daemonset("one-per-node").pods_on(["node-1"])


def test_devices_of_pods_are_listed_by_pod(world: Make) -> None:
    with new_scenario(world("second-sees-another"), "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        pods = scenario.pods("first", "second").should_run()
        assert pods.devices == {"first": pods[0].devices, "second": pods[0].devices}
        assert pods.seen_devices["first"] == pods.devices["first"]
        assert pods.seen_devices["second"] != pods.devices["second"]


def test_an_unreachable_api_server_does_not_blame_the_driver(world: Make) -> None:
    here = world("api-goes-away")
    with pytest.raises(ApiError), new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")


def test_a_missing_manifest_is_an_error_with_a_suggestion(world: Make) -> None:
    with (
        new_scenario(world(), "CLAIM-001") as scenario,
        pytest.raises(UsageError, match=r"did you mean claims/two-cats\.yaml"),
    ):
        scenario.apply("claims/two-cat.yaml")


def test_a_missing_variable_is_an_error(world: Make, tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("kind: Pod\nmetadata: {name: '{{ whose }}'}\n")
    with new_scenario(world(manifests=tmp_path), "CLAIM-001") as scenario, pytest.raises(UsageError, match="whose"):
        scenario.apply("pod.yaml")


def test_a_manifest_with_a_namespace_is_rejected(world: Make, tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("kind: Pod\nmetadata: {name: a, namespace: kube-system}\n")
    with (
        new_scenario(world(manifests=tmp_path), "CLAIM-001") as scenario,
        pytest.raises(UsageError, match=r"sets metadata\.namespace"),
    ):
        scenario.apply("pod.yaml")


def test_a_class_of_a_test_has_the_selectors_of_the_driver_files_class(world: Make) -> None:
    here, kind = world(), "device.attributes['gpu.dra-testbed.example'].type == \"gpu\""
    _kube(here).put("DeviceClass", here.driver_file.device_class, spec={"selectors": [{"cel": {"expression": kind}}]})
    with new_scenario(here, "CLAIM-001") as scenario:
        scenario.apply("claims/own-class.yaml")
        made = _kube(here).objects["DeviceClass", "default", scenario.namespace]
    assert made["spec"]["selectors"] == [
        {"cel": {"expression": f"device.driver == '{here.driver_file.driver}'"}},
        {"cel": {"expression": kind}},
    ]


def test_a_driver_file_class_without_selectors_adds_none(world: Make) -> None:
    here = world()
    with new_scenario(here, "CLAIM-001") as scenario:
        scenario.apply("claims/own-class.yaml")
        made = _kube(here).objects["DeviceClass", "default", scenario.namespace]
    assert len(made["spec"]["selectors"]) == 1


def test_pods_of_a_chosen_device_run_on_its_node(world: Callable[..., World]) -> None:
    here = world()
    with new_scenario(here, "SELECT-001") as scenario:
        wanted = Driver(here).identity(max(Driver(here).devices))
        pod = next(
            each
            for each in scenario._rendered("selection/by-attribute.yaml", {"wanted": wanted})
            if each["kind"] == "Pod"
        )
        (term,) = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}
        plain = Driver(here).published_value(max(Driver(here).devices), "uuid")
        pod = next(
            each
            for each in scenario._rendered("selection/by-attribute.yaml", {"wanted": plain})
            if each["kind"] == "Pod"
        )
        assert "affinity" not in pod["spec"]
        other = Driver(here).identity(min(Driver(here).devices))
        with pytest.raises(UsageError, match="devices of several nodes: node-1, node-2"):
            scenario.apply("selection/two-different.yaml", left=wanted, right=other)
