"""DeviceTaintRules: taints that an administrator sets on devices."""

from testbed.conformance import CLUSTER, E2E, MUST, NONE, messages, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section Taints set by an admin"
API = "API reference: DeviceTaintRule v1 resource.k8s.io"
EVICTED = messages.DEVICE_TAINT_EVICTION


@requirement(
    "TAINT-020",
    "A DeviceTaintRule with effect NoSchedule must keep new pods from the device, and not affect the pod that already uses it.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("identity",),
    gates=("DRADeviceTaintRules",),
    kubernetes="1.37",
    mutants=("no-env", "taint-rules-narrowed", "taint-rules-evict"),
    counts=(1,),
)
def test_a_rule_keeps_new_pods_from_a_device(scenario, driver):
    scenario.apply("basic/claim-by-name.yaml")
    pod = scenario.pod("pod").should_run()
    (device,) = pod.devices

    scenario.apply("taints/rule.yaml", device=device, effect="NoSchedule")
    scenario.taint_rule.should_be_observed()
    assert pod.should_stay_running().seen_devices == {device}

    pod.delete().should_be_gone()
    scenario.claim("my-device").should_be_deallocated()
    scenario.apply("taints/second-pod.yaml", wanted=driver.identity(device))
    second = scenario.pod("second").should_be_unschedulable(because=messages.NO_DEVICE_FITS)

    assert second.should_stay_unscheduled().devices == NONE
    scenario.delete("devicetaintrule", scenario.namespace)
    assert second.should_run().seen_devices == {device}


@requirement(
    "TAINT-021",
    "A pod that waits because of a DeviceTaintRule must run and see the device once the rule is deleted.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("identity",),
    gates=("DRADeviceTaintRules",),
    kubernetes="1.37",
    mutants=(
        "no-env",
        "share-one-device",
        "taint-rules-narrowed",
    ),
    counts=(1,),
    given=("one-class",),
)
def test_a_pod_runs_when_the_rule_is_deleted(scenario, driver):
    device = max(driver.devices)
    scenario.apply("taints/rule.yaml", device=device, effect="NoSchedule")
    scenario.taint_rule.should_be_observed()
    scenario.apply("taints/no-toleration.yaml", wanted=driver.identity(device))
    pod = scenario.pod("pod").should_be_unschedulable(because=messages.NO_DEVICE_FITS)

    scenario.delete("devicetaintrule", scenario.namespace)

    assert pod.should_run().seen_devices == {device}


@requirement(
    "TAINT-022",
    "A DeviceTaintRule with effect NoExecute must evict the pod that uses the device, and the claim must be deallocated. "
    "Pod and rule must report the eviction.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    gates=("DRADeviceTaintRules",),
    kubernetes="1.37",
    mutants=("unprepare-fails", "disruptions-untold", "taint-rules-untold"),
    covers=("T3",),
    counts=(1,),
)
def test_a_rule_evicts_a_pod(scenario):
    scenario.apply("taints/slow-to-end.yaml")
    pod = scenario.pod("pod").should_run()
    (device,) = pod.devices

    scenario.apply("taints/rule.yaml", device=device, effect="NoExecute")
    pod.should_be_disrupted(messages.DELETION_BY_DEVICE_TAINT)
    pod.should_have_event(EVICTED, messages.MARKED_FOR_DELETION)
    scenario.taint_rule.should_report(messages.PODS_PENDING_EVICTION, messages.EVICTION_COMPLETED)
    assert scenario.taint_rule.time_added
    pod.should_be_gone()

    scenario.claim("my-device").should_be_deallocated()


@requirement(
    "TAINT-023",
    "A pod whose claim tolerates the taint of a NoExecute DeviceTaintRule must keep running "
    "with its device, also in a restarted container.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("identity",),
    gates=("DRADeviceTaintRules",),
    kubernetes="1.37",
    mutants=(
        "no-env",
        "cdi-file-is-lost",
    ),
    counts=(1,),
    given=("one-class",),
)
def test_a_rule_can_be_tolerated(scenario, driver):
    device = max(driver.devices)
    named = {"key": f"example.com/{scenario.namespace}", "value": "by-hand", "effect": "NoExecute"}
    scenario.apply("taints/toleration.yaml", wanted=driver.identity(device), **named)
    pod = scenario.pod("pod").should_run()

    scenario.apply("taints/rule.yaml", device=device, effect="NoExecute")
    scenario.taint_rule.should_be_observed()
    pod.should_stay_running()

    assert pod.container("workload").restart().seen_devices == {device}


@requirement(
    "TAINT-024",
    "A pod that tolerates a NoExecute taint for some seconds must keep running for that time and "
    "then be evicted, and its claim must be deallocated.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source="API reference: ResourceClaim v1 resource.k8s.io, DeviceToleration.tolerationSeconds",
    features=("identity",),
    gates=("DRADeviceTaintRules",),
    kubernetes="1.37",
    mutants=("unprepare-fails",),
    covers=("G7",),
    counts=(1,),
    given=("one-class",),
)
def test_a_rule_is_tolerated_for_some_seconds(scenario, driver):
    device = max(driver.devices)
    tolerated = {"key": f"example.com/{scenario.namespace}", "seconds": scenario.toleration_seconds}
    scenario.apply("taints/tolerates-for-a-while.yaml", wanted=driver.identity(device), **tolerated)
    pod = scenario.pod("pod").should_run()

    scenario.apply("taints/rule.yaml", device=device, effect="NoExecute")
    pod.should_stay_running()
    pod.should_have_event(EVICTED, messages.MARKED_FOR_DELETION)
    pod.should_be_gone()

    scenario.claim("my-device").should_be_deallocated()


@requirement(
    "TAINT-025",
    "A DeviceTaintRule with effect None must neither evict a pod nor keep new pods from getting and seeing the device.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("identity",),
    gates=("DRADeviceTaintRules",),
    kubernetes="1.37",
    mutants=(
        "no-env",
        "share-one-device",
        "taint-rules-evict",
    ),
    counts=(1,),
    given=("one-class",),
)
def test_a_rule_without_effect(scenario, driver):
    device = max(driver.devices)
    scenario.apply("taints/no-toleration.yaml", wanted=driver.identity(device))
    pod = scenario.pod("pod").should_run()
    scenario.apply("taints/rule.yaml", device=device, effect="None")
    scenario.taint_rule.should_be_observed()
    assert pod.should_stay_running().seen_devices == {device}

    pod.delete().should_be_gone()
    scenario.apply("taints/second-pod.yaml", wanted=driver.identity(device))
    second = scenario.pod("second").should_run().should_stay_running()

    assert second.seen_devices == {device}


@requirement(
    "TAINT-026",
    "A DeviceTaintRule for a pool must taint the devices of that pool, and no others.",
    level=MUST,
    tier=E2E,
    nodes=2,
    exclusive=True,
    source=API,
    gates=("DRADeviceTaintRules",),
    given=("local", "one-class"),
    kubernetes="1.37",
    mutants=("no-env", "taint-rules-narrowed", "taint-rules-widened"),
)
def test_a_rule_for_a_pool(scenario, driver, node):
    tainted = driver.only_pool_on(node)
    scenario.apply("taints/rule-for-a-pool.yaml", pool=tainted)
    scenario.taint_rule.should_be_observed()
    scenario.apply("taints/two-nodes.yaml", node=node)
    here = scenario.pod("here").should_be_unschedulable(because=messages.NO_DEVICE_FITS)
    elsewhere = scenario.pod("elsewhere").should_run()

    assert here.should_stay_unscheduled().devices == NONE
    assert elsewhere.seen_devices == elsewhere.devices
    assert len(elsewhere.devices - driver.devices_on(node)) == 1
    scenario.delete("devicetaintrule", scenario.namespace)
    here.should_run()


@requirement(
    "TAINT-027",
    "A DeviceTaintRule for a driver must taint all devices of that driver.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=API,
    gates=("DRADeviceTaintRules",),
    kubernetes="1.37",
    about=CLUSTER,
    mutants=("taint-rules-narrowed",),
)
def test_a_rule_for_a_driver(scenario):
    scenario.apply("taints/rule-for-the-driver.yaml")
    scenario.taint_rule.should_be_observed()
    scenario.apply("basic/claim-by-name.yaml")
    pod = scenario.pod("pod").should_be_unschedulable(because=messages.NO_DEVICE_FITS)
    assert pod.devices == NONE

    scenario.delete("devicetaintrule", scenario.namespace)
    scenario.claim("my-device").should_be_allocated()


@requirement(
    "TAINT-028",
    "The API server must reject a DeviceTaintRule with an unknown effect.",
    level=MUST,
    tier=E2E,
    source=API,
    gates=("DRADeviceTaintRules",),
    kubernetes="1.37",
    about=CLUSTER,
    mutants=("taint-rules-narrowed",),
    given=("one-class",),
)
def test_an_unknown_effect_is_refused(scenario, driver):
    refusal = scenario.should_be_refused("taints/rule.yaml", device=max(driver.devices), effect="NoFun")

    assert 'Unsupported value: "NoFun"' in refusal
