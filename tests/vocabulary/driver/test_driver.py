from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed, NothingToJudge, UsageError
from testbed.models.driver.devices import Expect
from testbed.models.driver_file import load_companions
from testbed.vocabulary.checked_sets import NONE
from testbed.vocabulary.driver.driver import Driver
from testbed.vocabulary.driver.published_values import PublishedValue
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.world import World
from tests.fakes import cluster
from tests.fakes.driver_files import with_values
from tests.fakes.kube import FakeKube

Make = Callable[..., World]


def test_a_correct_driver_has_complete_pools_and_each_device_once(world: Make) -> None:
    driver = Driver(world())
    assert [pool.name for pool in driver.pools] == list(cluster.NODES)
    assert (driver.incomplete_pools, driver.duplicate_devices) == ((), ())
    assert len(driver.devices) == 8


def test_a_pool_without_one_of_its_slices_is_incomplete(world: Make) -> None:
    driver = Driver(world("count-one-slice-too-many"))
    assert [repr(pool) for pool in driver.incomplete_pools] == [
        f"pool {node}: 1 of 2 slices of generation 1" for node in cluster.NODES
    ]


def test_a_device_in_two_slices_of_a_pool_is_a_duplicate(world: Make) -> None:
    driver = Driver(world("publish-devices-twice"))
    assert driver.duplicate_devices[0] == Device(cluster.DRIVER, "node-1", "gpu-0")
    assert len(driver.duplicate_devices) == len(driver.devices) == 8
    assert driver.incomplete_pools == ()


def test_the_attributes_of_a_device_have_full_names(world: Make) -> None:
    device = Device(cluster.DRIVER, "node-1", "gpu-0")
    driver = Driver(world())
    expected = {f"{cluster.DRIVER}/uuid": {"string": "node-1-uuid-0"}, f"{cluster.DRIVER}/model": {"string": "F100"}}
    assert driver.attributes(device) == expected
    with pytest.raises(DriverFailed, match="publishes no device"):
        driver.attributes(replace(device, name="gpu-9"))


def test_inconsistent_pools_and_ownerless_slices(world: Make) -> None:
    made = world("publish-devices-twice")
    kube = cast("FakeKube", made.kube)
    driver = Driver(made)
    for node in cluster.NODES:
        kube.objects["Node", "default", node]["metadata"]["uid"] = f"uid-{node}"
        for name in (f"slice-{node}", f"slice-{node}-2"):
            owner = {"kind": "Node", "uid": f"uid-{node}"}
            kube.objects["ResourceSlice", "default", name]["metadata"]["ownerReferences"] = [owner]
    assert (driver.inconsistent_pools, driver.ownerless_slices) == ((), ())
    first = kube.objects["ResourceSlice", "default", "slice-node-1"]
    first["metadata"]["ownerReferences"] = None
    first["spec"]["pool"]["resourceSliceCount"] = 3
    assert list(driver.ownerless_slices) == ["slice-node-1 of node node-1"]
    assert len(driver.inconsistent_pools) == 1


def test_devices_on_nodes_where_the_driver_is_not_expected_do_not_count(world: Make) -> None:
    made = world()
    kube = cast("FakeKube", made.kube)
    kube.put("Node", "control-plane", spec={"taints": [{"key": "x", "effect": "NoSchedule"}]}, status={})
    kube.put("ResourceSlice", "slice-control-plane", spec=cluster.slice_spec("control-plane", 4))
    driver = Driver(made)
    assert len(driver.devices) == 8
    assert len(driver.devices_on("control-plane")) == 4
    taint = [{"key": "k", "effect": "NoSchedule"}]
    for node in ("control-plane", "node-2"):
        kube.objects["ResourceSlice", "default", f"slice-{node}"]["spec"]["devices"][0]["taints"] = taint
    assert driver.tainted("NoSchedule").device.pool == "node-2"  # the driver is expected there


def test_a_driver_that_publishes_nothing_is_blamed(world: Make) -> None:
    driver = Driver(world("slices-missing"))
    assert driver.pools == ()
    with pytest.raises(DriverFailed, match=r"no device of class .* where it is expected"):
        max(driver.devices)
    with pytest.raises(DriverFailed, match=r"publishes no device$"):
        driver.duplicate_devices  # noqa: B018 - a property that raises


def test_a_node_without_devices_blames_the_driver(world: Make) -> None:
    with pytest.raises(DriverFailed, match=r"no device of class .* for node node-3"):
        min(Driver(world()).devices_on("node-3"))


def test_network_attached_devices_leave_nothing_to_judge_on_a_node(world: Make) -> None:
    made = world()
    kube = cast("FakeKube", made.kube)
    spec = {key: value for key, value in cluster.slice_spec("far", 1).items() if key != "nodeName"}
    kube.put("ResourceSlice", "slice-far", spec={**spec, "allNodes": True})
    network = with_values(made.driver_file, "devices", belong_to="network")
    with pytest.raises(DriverFailed, match=r"publishes no device of class \S+ for node node-3"):
        Driver(made).devices_on("node-3")
    with pytest.raises(NothingToJudge, match=r"declares network-attached devices \(spec\.devices\.belongTo\)"):
        Driver(replace(made, driver_file=network)).devices_on("node-3")


def test_the_published_values_of_a_device(world: Make) -> None:
    driver = Driver(world())
    device = max(driver.devices_on("node-2"))
    assert device == Device(cluster.DRIVER, "node-2", "gpu-3")
    assert len(driver.devices_on("node-2")) == 4
    assert (
        driver.identity(device)
        == driver.published_value(device, "uuid")
        == PublishedValue(cluster.DRIVER, "uuid", '"node-2-uuid-3"')
    )
    assert driver.devices_with_value(driver.identity(device), "node-2") == {device}
    assert driver.devices_with_value(driver.identity(device), "node-1") == NONE


def test_a_driver_file_without_identity_is_an_error(world: Make) -> None:
    made = world()
    driver = Driver(replace(made, driver_file=with_values(made.driver_file, "devices", identity=None)))
    with pytest.raises(UsageError, match=r"driver file fake-gpu has no spec\.devices\.identity"):
        driver.identity(Device(cluster.DRIVER, "node-1", "gpu-0"))
    with pytest.raises(UsageError, match=r"driver file fake-gpu has no spec\.devices\.identity"):
        driver.devices_named_in("", "node-1")


def test_an_identity_names_the_node_of_the_device(world: Make) -> None:
    driver = Driver(world())
    assert {driver.identity(each).node for each in driver.devices_on("node-2")} == {"node-2"}


def test_two_special_devices_with_one_identity_cannot_be_judged(world: Make) -> None:
    made = world()
    kube: Any = made.kube
    devices = kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]["devices"]
    for each in devices[:2]:
        each["attributes"] |= {"uuid": {"string": "same"}, "purpose": {"string": "partitions"}}
    devices[2]["attributes"]["uuid"] = {"string": "same"}
    with pytest.raises(NothingToJudge, match=r"gpu-0 and \S+/gpu-1 have the same uuid"):
        Driver(made).identity(Device(cluster.DRIVER, "node-1", "gpu-0"))
    assert Driver(made).identity(Device(cluster.DRIVER, "node-1", "gpu-2")).literal == '"same"'


def test_a_companion_without_an_identity_attribute_leaves_nothing_to_judge(world: Make) -> None:
    alone = world()
    (companion,) = load_companions(alone.driver_file)
    vague = with_values(companion, "devices", identity=None)
    with pytest.raises(NothingToJudge, match=r"driver file fake-nic has no spec\.devices\.identity"):
        _ = Driver(replace(alone, companions=(vague,))).companion_with_identity


def test_values_of_an_unpublished_device_blame_the_driver(world: Make) -> None:
    with pytest.raises(DriverFailed, match="publishes no device"):
        Driver(world()).identity(Device(cluster.DRIVER, "node-1", "gpu-99"))


def test_the_examples_of_the_driver_file(world: Make) -> None:
    driver = Driver(world())
    assert driver.device_class == cluster.DRIVER
    assert driver.examples.match_attribute == "resource.kubernetes.io/pcieRoot"


def test_devices_are_found_by_their_identities_in_a_status(world: Make) -> None:
    driver = Driver(world())
    status = {"uuid": "node-1-uuid-1", "peers": ["node-2-uuid-0", "node-1-uuid-10"]}
    assert driver.devices_named_in(status, "node-1") == {Device(cluster.DRIVER, "node-1", "gpu-1")}
    assert driver.devices_named_in(status, "node-2") == {Device(cluster.DRIVER, "node-2", "gpu-0")}
    assert driver.devices_named_in(None, "node-1") == NONE


def test_devices_of_other_classes_do_not_count(world: Make) -> None:
    here = world()
    kube: Any = here.kube
    first = kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]["devices"][0]
    first["attributes"]["purpose"] = {"string": "taints"}
    first["taints"] = [{"key": "k", "effect": "NoSchedule"}]
    driver, device = Driver(here), Device(cluster.DRIVER, "node-1", "gpu-0")
    assert device not in driver.devices | driver.devices_on("node-1")
    assert driver.tainted("NoSchedule").device == device
    assert driver.identity(device).literal == '"node-1-uuid-0"'


def test_shareable_devices(world: Make) -> None:
    here = world()
    kube: Any = here.kube
    last = kube.objects["ResourceSlice", "default", "slice-node-2"]["spec"]["devices"][3]
    last |= {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "16Gi"}}}
    driver, device = Driver(here), Device(cluster.DRIVER, "node-2", "gpu-3")
    assert driver.shareable_on("node-2") == (device,)
    assert driver.default_share(device) == "16Gi"
    with pytest.raises(DriverFailed, match="no device that allows multiple allocations"):
        driver.shareable_on("node-1")
    with pytest.raises(DriverFailed, match=r"node node-2 has 1, but spec\.optional\.capacity\.perNode is 2"):
        driver.shareable_on("node-2", at_least=2)
    assert driver.contradictions.nodes_with_too_few_shareable_devices == tuple(
        f"node {node} has {count}, but spec.optional.capacity.perNode is 2"
        for node, count in (("node-1", 0), ("node-2", 1))
    )
    one = Driver(replace(here, driver_file=with_values(here.driver_file, "optional.capacity", per_node=1)))
    with pytest.raises(
        NothingToJudge, match="publishes 1 devices on node node-2 that allow multiple allocations; 2 are needed"
    ):
        one.shareable_on("node-2", at_least=2)
    with pytest.raises(DriverFailed, match="publishes no device"):
        driver.default_share(Device(cluster.DRIVER, "node-2", "gpu-9"))
    assert driver.sharing.half == "8Gi"
    assert driver.classes.capacity == f"capacity.{cluster.DRIVER}"


def _describe(here: World, device: str, **described: Any) -> None:
    kube: Any = here.kube
    kube.objects["ResourceSlice", "default", "slice-node-2"]["spec"]["devices"][int(device[-1])] |= described


def test_amounts_of_a_capacity(world: Make) -> None:
    here = world()
    for node in cluster.NODES:
        for each in cast("FakeKube", here.kube).objects["ResourceSlice", "default", f"slice-{node}"]["spec"]["devices"]:
            each["capacity"] = {"memory": {"value": "8Gi"}}
    _describe(here, "gpu-2", capacity={"memory": {"value": "16Gi"}})
    driver = Driver(here)
    assert driver.published_value(Device(cluster.DRIVER, "node-2", "gpu-2"), "memory").amount == 16 * 1024**3
    assert driver.more_than_any_device_has("memory") == PublishedValue(
        cluster.DRIVER, "memory", f'quantity("{16 * 1024**3 + 1}")'
    )


def test_the_amount_above_the_limit_is_within_the_capacity(world: Make) -> None:
    here = world()
    _describe(here, "gpu-2", capacity={"memory": {"value": "16Gi"}})
    _describe(here, "gpu-3", capacity={"memory": {"value": "8Gi"}})
    assert Driver(here).amount_above_limit(Device(cluster.DRIVER, "node-2", "gpu-2")) == "10Gi"
    with pytest.raises(
        UsageError,
        match=r"spec\.optional\.capacity\.tooMuch of the driver file is 10Gi, which exceeds the memory of .*/gpu-3",
    ):
        Driver(here).amount_above_limit(Device(cluster.DRIVER, "node-2", "gpu-3"))


def test_the_binding_conditions_of_a_device(world: Make) -> None:
    here = world()
    _describe(here, "gpu-3", bindingConditions=["a", "b"], bindingFailureConditions=["c"])
    driver, device = Driver(here), Device(cluster.DRIVER, "node-2", "gpu-3")
    assert (driver.binding_conditions(device), driver.binding_failure_conditions(device)) == (["a", "b"], ["c"])
    for ask in (driver.binding_conditions, driver.binding_failure_conditions):
        with pytest.raises(DriverFailed, match=r"gpu-2 has no binding (failure )?conditions"):
            ask(Device(cluster.DRIVER, "node-2", "gpu-2"))


def test_the_only_pool_of_a_node(world: Make) -> None:
    here = world()
    assert Driver(here).only_pool_on("node-1") == "node-1"
    kube: Any = here.kube
    kube.put("ResourceSlice", "another", spec={**cluster.slice_spec("node-1", 1), "pool": {**_POOL, "name": "more"}})
    with pytest.raises(NothingToJudge, match="on node node-1 are in 2 pools"):
        Driver(here).only_pool_on("node-1")


_POOL = {"generation": 1, "resourceSliceCount": 1}


def test_partitionable_devices(world: Make) -> None:
    here = world()
    kube: Any = here.kube
    spec = kube.objects["ResourceSlice", "default", "slice-node-2"]["spec"]
    counters = {"c": {"value": "2"}}
    spec["sharedCounters"] = [{"name": "set", "counters": counters}]
    for device, takes in zip(spec["devices"][:3], (counters, *2 * [{"c": {"value": "1"}}]), strict=True):
        device["consumesCounters"] = [{"counterSet": "set", "counters": takes}]
    with pytest.raises(DriverFailed, match=r"node node-2 has 2 partitions, but spec\.optional\.partitions\.parts is 4"):
        Driver(here).partitionable_on("node-2")
    driver = Driver(replace(here, driver_file=with_values(here.driver_file, "optional.partitions", parts=2)))
    assert driver.partitionable_on("node-2").whole == Device(cluster.DRIVER, "node-2", "gpu-0")
    assert len(driver.partitionable_devices) == 1
    with pytest.raises(DriverFailed, match="consume the same counters"):
        driver.partitionable_on("node-1")


def test_slices_are_replaced(world: Make) -> None:
    made = world()
    kube = cast("FakeKube", made.kube)
    driver = Driver(made)
    for number, node in enumerate(cluster.NODES):
        kube.objects["ResourceSlice", "default", f"slice-{node}"]["metadata"]["uid"] = str(number)
    assert driver.slices_on("node-1") == {"0"}
    assert driver.should_replace_slices(frozenset({"before"}), "node-1") is driver


@pytest.mark.parametrize(
    ("uid", "count", "seen"), [("old", 1, "1 old slices still exist"), ("new", 2, "no pool is complete")]
)
def test_a_driver_that_does_not_replace_its_slices_is_blamed(world: Make, uid: str, count: int, seen: str) -> None:
    made = world()
    kube = cast("FakeKube", made.kube)
    slice_ = kube.objects["ResourceSlice", "default", "slice-node-1"]
    slice_["metadata"]["uid"] = uid
    slice_["spec"]["pool"]["resourceSliceCount"] = count
    with pytest.raises(NotObserved, match=rf"the driver has to publish them again(.|\n)*{seen}"):
        Driver(made).should_replace_slices(frozenset({"old"}), "node-1")


def test_lost_slices_are_waited_for(world: Make) -> None:
    made = world()
    kube = cast("FakeKube", made.kube)
    kube.objects["ResourceSlice", "default", "slice-node-1"]["metadata"]["uid"] = "new"
    driver = Driver(made)
    assert driver.should_lose_slices(frozenset({"old"}), "node-1") is driver
    with pytest.raises(NotObserved, match=r"a process of the driver(.|\n)*1 of \d slices still exist"):
        driver.should_lose_slices(frozenset({"old", "new"}), "node-1")


def test_the_invalid_field_of_the_driver_file(world: Make) -> None:
    assert Driver(world()).invalid_field == "sharing.interval"


@pytest.mark.parametrize(("declared", "setting"), [("claim", "other"), ("class", "one")])
def test_the_driver_file_declares_which_of_several_settings_is_applied(
    world: Make, declared: str, setting: str
) -> None:
    assert Driver(_with_precedence(world(), declared)).effective_setting("one", "other") == {setting}


@pytest.mark.parametrize("declared", ["none", None])
def test_without_a_declared_precedence_no_setting_is_expected(world: Make, declared: str | None) -> None:
    with pytest.raises(UsageError, match="declares no precedence"):
        Driver(_with_precedence(world(), declared)).effective_setting("one", "other")


def _with_precedence(made: World, declared: str | None) -> World:
    file = made.driver_file
    assert file.configuration
    configuration = file.configuration.model_copy(update={"precedence": declared})
    spec = file.spec.model_copy(update={"configuration": configuration})
    return replace(made, driver_file=file.model_copy(update={"spec": spec}))


def test_the_companion_is_another_driver(world: Make) -> None:
    alone = world()
    driver = Driver(replace(alone, companions=load_companions(alone.driver_file)))
    assert (driver.companion.name, driver.companion.device_class) == ("nic.dra-testbed.example",) * 2
    assert driver.companion_with_identity == driver.companion
    mine, other = Device(driver.name, "node-1", "gpu-0"), Device(driver.companion.name, "node-1", "nic-0")
    assert driver.own([mine, other]) == {mine}
    assert driver.companion.own([mine, other]) == {other}


def test_a_driver_file_without_companions_is_an_error(world: Make) -> None:
    with pytest.raises(UsageError, match="driver file fake-gpu names no companions"):
        _ = Driver(world()).companion


def test_a_node_without_slices_has_none_to_lose(world: Make) -> None:
    with pytest.raises(DriverFailed, match="the driver publishes no ResourceSlice for node nowhere"):
        Driver(world()).slices_on("nowhere")


def test_the_attributes_that_two_descriptions_have_in_common(world: Make) -> None:
    driver = Driver(world())
    device = min(driver.devices)
    model = f"{cluster.DRIVER}/model"
    assert driver.common_attributes(device, {model: {}, "other": {}}) == {model: {"string": "F100"}}
    with pytest.raises(
        NothingToJudge, match=r"no attribute of .* is both in its metadata file and in its ResourceSlice"
    ):
        driver.common_attributes(device, ["other"])


def test_without_expected_values_there_is_nothing_to_judge(world: Make) -> None:
    made = world()
    with pytest.raises(NothingToJudge, match="the driver file expects no values"):
        _ = Driver(made).contradictions.unexpected_values
    devices = made.driver_file.devices.model_copy(update={"expect": Expect(attributes={"model": "another"})})
    spec = made.driver_file.spec.model_copy(update={"devices": devices})
    found = Driver(replace(made, driver_file=made.driver_file.model_copy(update={"spec": spec})))
    assert "attribute model of device gpu-0 of pool node-1 is 'F100'" in found.contradictions.unexpected_values[0]


def test_devices_of_two_nodes_with_the_same_name(world: Callable[..., World]) -> None:
    here, there = Driver(world()).namesakes_on("node-2", "node-1")
    assert (here.pool, there.pool, here.name) == ("node-2", "node-1", there.name)


@pytest.mark.parametrize("declared", ["memory", f"{cluster.DRIVER}/memory"])
@pytest.mark.parametrize("published", ["memory", f"{cluster.DRIVER}/memory"])
def test_a_capacity_is_requested_as_it_is_published(world: Make, declared: str, published: str) -> None:
    made = world()
    _describe(made, "gpu-3", allowMultipleAllocations=True, capacity={published: {"value": "16Gi"}})
    file = with_values(made.driver_file, "optional.capacity", capacity=declared)
    driver = Driver(replace(made, driver_file=file))
    assert driver.sharing.capacity == published
    assert driver.default_share(Device(cluster.DRIVER, "node-2", "gpu-3")) == "16Gi"


def test_devices_that_are_not_published_again_are_named(world: Make) -> None:
    driver = Driver(world())
    devices = driver.devices_on("node-1")
    driver.should_publish(devices, "node-1")
    with pytest.raises(
        NotObserved, match=r"(?s)the same devices on node-1 again.*missing: no device; surplus: gpu-0 of"
    ):
        driver.should_publish(devices - {min(devices)}, "node-1")
