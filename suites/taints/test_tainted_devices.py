"""Taints that a driver gives its devices, and claims that tolerate them."""

import pytest

from testbed.conformance import CLUSTER, E2E, MUST, requirement

DOCS = "kubernetes.io: Dynamic Resource Allocation, Device taints and tolerations"
API = "API reference: ResourceClaim v1 resource.k8s.io, DeviceToleration"


@requirement(
    "TAINT-001",
    "A device with a taint of effect NoSchedule is given to no pod that does not tolerate it.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("taints", "identity"),
    gates=("DRADeviceTaints",),
    mutants=("taints-missing", "everything-tolerated"),
    covers=("T1",),
)
def test_no_schedule_keeps_a_pod_pending(scenario, driver):
    tainted = driver.tainted("NoSchedule")
    scenario.apply(
        "taints/no-toleration.yaml", device_class=driver.classes.taints, wanted=driver.identity(tainted.device)
    )
    pod = scenario.pod("pod").should_be_unschedulable(because="cannot allocate all claims")

    assert pod.devices == frozenset()


@requirement(
    "TAINT-002",
    "A claim that tolerates the taint gets the device, and its container sees it.",
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
)
def test_no_schedule_can_be_tolerated(scenario, driver):
    tainted = driver.tainted("NoSchedule")
    wanted = {"device_class": driver.classes.taints, "wanted": driver.identity(tainted.device)}
    scenario.apply("taints/toleration.yaml", **wanted, key=tainted.key, value=tainted.value, effect="NoSchedule")
    pod = scenario.pod("pod").should_run()

    assert pod.seen_devices == pod.devices == {tainted.device}


@requirement(
    "TAINT-003",
    "A toleration without key and effect tolerates a taint of effect NoSchedule, whatever its key and value.",
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
)
def test_everything_can_be_tolerated(scenario, driver):
    tainted = driver.tainted("NoSchedule")
    wanted = {"device_class": driver.classes.taints, "wanted": driver.identity(tainted.device)}
    scenario.apply("taints/tolerates-everything.yaml", **wanted)

    assert scenario.pod("pod").should_run().seen_devices == {tainted.device}


@requirement(
    "TAINT-004",
    "A toleration counts only for the taint whose key, value and effect it names.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=API,
    features=("taints", "identity"),
    gates=("DRADeviceTaints",),
    mutants=("taints-missing", "everything-tolerated"),
)
@pytest.mark.parametrize(
    "other",
    [{"key": "example.com/another"}, {"value": "another"}, {"effect": "NoExecute"}],
    ids=["key", "value", "effect"],
)
def test_another_toleration_does_not_count(scenario, driver, other):
    tainted = driver.tainted("NoSchedule")
    wanted = {"device_class": driver.classes.taints, "wanted": driver.identity(tainted.device)}
    named = {"key": tainted.key, "value": tainted.value, "effect": "NoSchedule", **other}
    scenario.apply("taints/toleration.yaml", **wanted, **named)
    pod = scenario.pod("pod").should_be_unschedulable(because="cannot allocate all claims")

    assert pod.devices == frozenset()


@requirement(
    "TAINT-005",
    "A device with a taint of effect NoExecute is given to no pod that does not tolerate it.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("taints", "identity"),
    gates=("DRADeviceTaints",),
    mutants=("taints-missing", "everything-tolerated"),
    covers=("T7",),
)
def test_no_execute_keeps_a_pod_pending(scenario, driver):
    tainted = driver.tainted("NoExecute")
    scenario.apply(
        "taints/no-toleration.yaml", device_class=driver.classes.taints, wanted=driver.identity(tainted.device)
    )
    pod = scenario.pod("pod").should_be_unschedulable(because="cannot allocate all claims")

    assert pod.devices == frozenset()


@requirement(
    "TAINT-006",
    "A pod whose claim tolerates a taint of effect NoExecute runs with the device, and is not evicted.",
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
)
def test_no_execute_can_be_tolerated(scenario, driver):
    tainted = driver.tainted("NoExecute")
    wanted = {"device_class": driver.classes.taints, "wanted": driver.identity(tainted.device)}
    scenario.apply("taints/toleration.yaml", **wanted, key=tainted.key, value=tainted.value, effect="NoExecute")
    pod = scenario.pod("pod").should_run().should_stay_running()

    assert pod.seen_devices == {tainted.device}


@requirement(
    "TAINT-007",
    "The allocation repeats what the claim tolerates, so that it is known who may be evicted.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source="API reference: ResourceClaim v1 resource.k8s.io, DeviceRequestAllocationResult.tolerations",
    features=("taints", "identity"),
    gates=("DRADeviceTaints",),
    about=CLUSTER,
    mutants=("tolerations-untold",),
)
def test_the_allocation_repeats_the_tolerations(scenario, driver):
    tainted = driver.tainted("NoSchedule")
    wanted = {"device_class": driver.classes.taints, "wanted": driver.identity(tainted.device)}
    scenario.apply("taints/tolerates-everything.yaml", **wanted)
    scenario.pod("pod").should_run()
    (result,) = scenario.claim("my-device").results

    assert result.get("tolerations") == [{"operator": "Exists"}]


@requirement(
    "TAINT-008",
    "Where the devices of one alternative are tainted, the next one is taken.",
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
