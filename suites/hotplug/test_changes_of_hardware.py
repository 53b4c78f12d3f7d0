"""Devices appear, disappear and change while pods run."""

from testbed.conformance import E2E, MUST, messages, requirement

SLICES = "API reference: ResourceSlice v1 resource.k8s.io, ResourceSliceSpec"
POOLS = "API reference: ResourceSlice v1 resource.k8s.io, ResourcePool"
TAINTS = "Kubernetes documentation: Dynamic Resource Allocation, section Device taints and tolerations"
NEEDED = ("live-control",)
KEY = "suites.dra-testbed.example/broken"


@requirement(
    "HOTPLUG-001",
    "A device that was unplugged must not be allocated. When it is plugged in again, a pod that waits for it must run and see it.",
    level=MUST,
    tier=E2E,
    features=(*NEEDED, "identity"),
    exclusive=True,
    source=SLICES,
    mutants=("publish-once", "unplugged-devices-stay-published"),
    covers=("G8",),
    counts=(1,),
    given=("one-class",),
)
def test_a_device_is_unplugged_and_plugged_in_again(scenario, driver, hardware):
    device = max(driver.devices)
    wanted = driver.identity(device)

    hardware.unplug(device)
    scenario.apply("hotplug/chosen-device.yaml", wanted=wanted)
    pod = scenario.pod("pod").should_be_unschedulable(because=messages.NO_DEVICE_FITS)
    hardware.plug(device)
    pod.should_run()

    assert pod.seen_devices == {device}


@requirement(
    "HOTPLUG-002",
    "A pod must keep running when the driver stops publishing its device, and a restarted container must still see the device.",
    level=MUST,
    tier=E2E,
    features=(*NEEDED, "identity"),
    exclusive=True,
    source="KEP-4381, section ResourceSlice: what is published matters for new allocations, not for existing ones",
    mutants=("cdi-file-is-lost",),
    covers=("G8",),
    counts=(1,),
    given=("one-class",),
)
def test_a_pod_keeps_a_device_that_is_unplugged(scenario, driver, hardware):
    device = max(driver.devices)
    scenario.apply("hotplug/chosen-device.yaml", wanted=driver.identity(device))
    pod = scenario.pod("pod").should_run()

    hardware.unplug(device)
    container = pod.should_stay_running().container("workload")
    assert container.restarts == 0
    container.restart()
    hardware.plug(device)

    assert container.seen_devices == {device}


@requirement(
    "HOTPLUG-003",
    "While the devices of a pool change, every state in which the pool is complete must contain the old or the new "
    "devices, never a mix, and its generation must never decrease.",
    level=MUST,
    tier=E2E,
    devices=2,
    features=(*NEEDED, "identity"),
    given=("local", "one-class"),
    exclusive=True,
    source=POOLS,
    mutants=("publish-with-wrong-generation", "publish-once", "rewrites-slices-in-place"),
    covers=("G8",),
    counts=(1,),
)
def test_a_pool_is_never_seen_half_written(scenario, driver, hardware, node):
    device, other = min(driver.devices_on(node)), max(driver.devices_on(node))
    scenario.apply("hotplug/chosen-device.yaml", wanted=driver.identity(other))
    pod = scenario.pod("pod").should_run()

    change = hardware.unplug(device)

    assert pod.should_stay_running().seen_devices == {other}
    assert change.intermediate_states == ()
    assert change.generations == sorted(change.generations)


@requirement(
    "HOTPLUG-004",
    "When an attribute of a device changes, the driver must publish the new value, so that new pods can select the device by it.",
    level=MUST,
    tier=E2E,
    features=(*NEEDED, "example-attribute"),
    exclusive=True,
    source=SLICES,
    mutants=("publish-once",),
    covers=("G8",),
    counts=(1,),
    given=("one-class",),
)
def test_a_changed_attribute_applies_to_new_pods(scenario, driver, hardware):
    device = max(driver.devices)

    hardware.set(device, driver.examples.attribute, "changed")
    scenario.apply("hotplug/chosen-device.yaml", wanted=driver.published_value(device, driver.examples.attribute))
    pod = scenario.pod("pod").should_run()

    assert pod.seen_devices == {device}


@requirement(
    "HOTPLUG-005",
    "When a device gets a NoSchedule taint, the driver must publish the taint: a new pod that needs "
    "the device must wait until the taint is removed.",
    level=MUST,
    tier=E2E,
    features=(*NEEDED, "identity"),
    kubernetes="1.36",
    exclusive=True,
    source=TAINTS,
    gates=("DRADeviceTaints",),
    mutants=("publish-once", "taints-are-not-published"),
    covers=("G8",),
    counts=(1,),
    given=("one-class",),
)
def test_a_device_is_tainted_while_the_driver_runs(scenario, driver, hardware):
    device = max(driver.devices)

    hardware.taint(device, KEY, "NoSchedule")
    scenario.apply("hotplug/chosen-device.yaml", wanted=driver.identity(device))
    pod = scenario.pod("pod").should_be_unschedulable(because=messages.NO_DEVICE_FITS)
    hardware.untaint(device, KEY)
    pod.should_run()

    assert pod.seen_devices == {device}


@requirement(
    "HOTPLUG-006",
    "When a device gets a NoExecute taint, the driver must publish the taint: the pod that uses the "
    "device must be evicted and its claim deallocated.",
    level=MUST,
    tier=E2E,
    features=(*NEEDED, "identity"),
    kubernetes="1.36",
    exclusive=True,
    source=TAINTS,
    gates=("DRADeviceTaints",),
    mutants=("publish-once", "taints-are-not-published", "unprepare-fails"),
    covers=("G8",),
    counts=(1,),
    given=("one-class",),
)
def test_a_taint_evicts_the_pod_that_uses_the_device(scenario, driver, hardware):
    device = max(driver.devices)
    scenario.apply("hotplug/chosen-device.yaml", wanted=driver.identity(device))
    pod, claim = scenario.pod("pod").should_run(), scenario.claim("chosen")

    hardware.taint(device, KEY, "NoExecute")
    pod.should_be_gone()

    claim.should_be_deallocated()
