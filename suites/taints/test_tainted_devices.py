"""Taints that the driver publishes for its devices, and claims that tolerate them."""

import pytest

from testbed.conformance import CLUSTER, E2E, MUST, NONE, messages, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section Device taints and tolerations"
API = "API reference: ResourceClaim v1 resource.k8s.io, DeviceToleration"


@requirement(
    "TAINT-001",
    "A device with a NoSchedule taint must not be allocated to a claim that does not tolerate the taint.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("taints", "identity"),
    gates=("DRADeviceTaints",),
    about=CLUSTER,
    mutants=("everything-tolerated",),
    covers=("T1",),
    counts=(1,),
)
def test_no_schedule_keeps_a_pod_pending(scenario, driver):
    tainted = driver.tainted("NoSchedule")
    scenario.apply(
        "taints/no-toleration.yaml", device_class=driver.classes.taints, wanted=driver.identity(tainted.device)
    )
    pod = scenario.pod("pod").should_be_unschedulable(because=messages.NO_DEVICE_FITS)

    assert pod.devices == NONE

    scenario.apply("taints/control.yaml", device_class=driver.classes.taints, wanted=driver.identity(tainted.device))
    assert scenario.claim("control").should_be_allocated().devices == {tainted.device}


@requirement(
    "TAINT-002",
    "A claim that tolerates the NoSchedule taint of a device must get the device, and its container must see it.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("taints", "identity"),
    gates=("DRADeviceTaints",),
    mutants=(
        "no-env",
        "share-one-device",
        "taints-missing",
    ),
    covers=("T2",),
    counts=(1,),
)
def test_no_schedule_can_be_tolerated(scenario, driver):
    tainted = driver.tainted("NoSchedule")
    wanted = {"device_class": driver.classes.taints, "wanted": driver.identity(tainted.device)}
    scenario.apply("taints/toleration.yaml", **wanted, key=tainted.key, value=tainted.value, effect="NoSchedule")
    pod = scenario.pod("pod").should_run()

    assert pod.seen_devices == pod.devices == {tainted.device}


@requirement(
    "TAINT-003",
    "A toleration with operator Exists and without key and effect must tolerate a NoSchedule taint with any key and value.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=API,
    features=("taints", "identity"),
    gates=("DRADeviceTaints",),
    mutants=(
        "no-env",
        "share-one-device",
        "taints-missing",
    ),
    counts=(1,),
)
def test_everything_can_be_tolerated(scenario, driver):
    tainted = driver.tainted("NoSchedule")
    wanted = {"device_class": driver.classes.taints, "wanted": driver.identity(tainted.device)}
    scenario.apply("taints/tolerates-everything.yaml", **wanted)

    assert scenario.pod("pod").should_run().seen_devices == {tainted.device}


@requirement(
    "TAINT-004",
    "A toleration must only tolerate a taint with the same key, value and effect.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=API,
    features=("taints", "identity"),
    gates=("DRADeviceTaints",),
    about=CLUSTER,
    mutants=("everything-tolerated",),
    counts=(1,),
)
@pytest.mark.parametrize(
    "other",
    [{"key": "example.com/another"}, {"value": "another"}, {"effect": "NoExecute"}],
    ids=["key", "value", "effect"],
)
def test_a_toleration_that_does_not_match(scenario, driver, other):
    tainted = driver.tainted("NoSchedule")
    wanted = {"device_class": driver.classes.taints, "wanted": driver.identity(tainted.device)}
    named = {"key": tainted.key, "value": tainted.value, "effect": "NoSchedule", **other}
    scenario.apply("taints/toleration.yaml", **wanted, **named)
    pod = scenario.pod("pod").should_be_unschedulable(because=messages.NO_DEVICE_FITS)

    assert pod.devices == NONE

    scenario.apply("taints/control.yaml", device_class=driver.classes.taints, wanted=driver.identity(tainted.device))
    assert scenario.claim("control").should_be_allocated().devices == {tainted.device}


@requirement(
    "TAINT-005",
    "A device with a NoExecute taint must not be allocated to a claim that does not tolerate the taint.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("taints", "identity"),
    gates=("DRADeviceTaints",),
    about=CLUSTER,
    mutants=("everything-tolerated",),
    covers=("T7",),
    counts=(1,),
)
def test_no_execute_keeps_a_pod_pending(scenario, driver):
    tainted = driver.tainted("NoExecute")
    scenario.apply(
        "taints/no-toleration.yaml", device_class=driver.classes.taints, wanted=driver.identity(tainted.device)
    )
    pod = scenario.pod("pod").should_be_unschedulable(because=messages.NO_DEVICE_FITS)

    assert pod.devices == NONE

    scenario.apply("taints/control.yaml", device_class=driver.classes.taints, wanted=driver.identity(tainted.device))
    assert scenario.claim("control").should_be_allocated().devices == {tainted.device}


@requirement(
    "TAINT-006",
    "A pod whose claim tolerates the NoExecute taint of its device must run, see the device, and not be evicted.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("taints", "identity"),
    gates=("DRADeviceTaints",),
    mutants=(
        "no-env",
        "taints-missing",
    ),
    covers=("T8",),
    counts=(1,),
)
def test_no_execute_can_be_tolerated(scenario, driver):
    tainted = driver.tainted("NoExecute")
    wanted = {"device_class": driver.classes.taints, "wanted": driver.identity(tainted.device)}
    scenario.apply("taints/toleration.yaml", **wanted, key=tainted.key, value=tainted.value, effect="NoExecute")
    pod = scenario.pod("pod").should_run().should_stay_running()

    assert pod.seen_devices == {tainted.device}


@requirement(
    "TAINT-007",
    "The allocation must contain the tolerations of the request.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source="API reference: ResourceClaim v1 resource.k8s.io, DeviceRequestAllocationResult.tolerations",
    features=("taints", "identity"),
    gates=("DRADeviceTaints",),
    about=CLUSTER,
    mutants=("tolerations-untold",),
    counts=(1,),
)
def test_the_allocation_copies_the_tolerations(scenario, driver):
    tainted = driver.tainted("NoSchedule")
    wanted = {"device_class": driver.classes.taints, "wanted": driver.identity(tainted.device)}
    scenario.apply("taints/tolerates-everything.yaml", **wanted)
    scenario.pod("pod").should_be_scheduled()
    (result,) = scenario.claim("my-device").allocation_results

    assert result.get("tolerations") == [{"operator": "Exists"}]


@requirement(
    "TAINT-008",
    "If the devices of a subrequest have a taint that it does not tolerate, the next subrequest must "
    "be chosen, and the container must see its device.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("taints", "identity"),
    gates=("DRADeviceTaints", "DRAPrioritizedList"),
    mutants=(
        "taints-missing",
        "no-env",
    ),
)
def test_the_next_alternative_is_taken(scenario, driver):
    tainted = driver.tainted("NoSchedule")
    classes = {"tainted_class": driver.classes.taints, "device_class": driver.device_class}
    scenario.apply("taints/alternatives.yaml", **classes, wanted=driver.identity(tainted.device))
    pod = scenario.pod("pod").should_run()

    assert scenario.claim("my-device").requests == {"device/other"}
    assert pod.seen_devices == pod.devices
