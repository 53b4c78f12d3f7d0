"""The status of a pod says how the devices of its containers are; their driver knows it and tells the kubelet."""

from testbed.conformance import E2E, MUST, SHOULD, requirement

DOCS = "kubernetes.io: Dynamic Resource Allocation, Device health monitoring"
KEP = "KEP-4680, resource health in the status of a pod"


@requirement(
    "HEALTH-001",
    "The status of a pod says that its devices are well.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("health",),
    gates=("ResourceHealthStatus",),
    mutants=("health-unknown",),
)
def test_a_device_is_well(scenario):
    scenario.apply("basic/claim-by-name.yaml")
    pod = scenario.pod("pod").should_run()
    container = pod.container("workload").should_have_health("device", "Healthy")

    assert container.seen_devices == pod.devices


@requirement(
    "HEALTH-002",
    "The status of a pod says that a device of it is not well; the pod keeps running.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("health", "unhealthy"),
    gates=("ResourceHealthStatus",),
    mutants=(
        "health-unknown",
        "health-always-well",
    ),
)
def test_a_device_is_not_well(scenario, driver):
    scenario.apply("basic/claim-by-name.yaml", device_class=driver.classes.unhealthy)
    pod = scenario.pod("pod").should_run()
    pod.container("workload").should_have_health("device", "Unhealthy")

    assert pod.should_stay_running().seen_devices == pod.devices


@requirement(
    "HEALTH-003",
    "The status of a pod says why a device is not well.",
    level=SHOULD,
    tier=E2E,
    source=KEP,
    features=("health", "unhealthy"),
    gates=("ResourceHealthStatus", "ResourceHealthStatusMessage"),
    kubernetes="1.36",
    mutants=(
        "health-without-words",
        "health-unknown",
    ),
    covers=("H1",),
)
def test_why_a_device_is_not_well(scenario, driver):
    scenario.apply("basic/claim-by-name.yaml", device_class=driver.classes.unhealthy)
    pod = scenario.pod("pod").should_run()
    container = pod.container("workload").should_have_health("device", "Unhealthy")

    assert all(container.health_messages), "the status does not say why the device is not well"


@requirement(
    "HEALTH-004",
    "A container that refers to one request of a claim is told of the health of its own device.",
    level=MUST,
    tier=E2E,
    source=KEP,
    devices=2,
    features=("health",),
    gates=("ResourceHealthStatus",),
    mutants=(
        "health-unknown",
        "first-device-only",
    ),
)
def test_each_container_is_told_of_its_own_device(scenario):
    scenario.apply("basic/two-requests.yaml")
    left, right = scenario.pod("pod").should_run().containers("left", "right")
    left.should_have_health("devices/left", "Healthy")
    right.should_have_health("devices/right", "Healthy")

    assert (len(left.health_messages), len(right.health_messages)) == (1, 1)


@requirement(
    "HEALTH-005",
    "Where one device of a claim is well and another is not, each container is told of the one that it has.",
    level=MUST,
    tier=E2E,
    source=KEP,
    devices=2,
    features=("health", "unhealthy"),
    gates=("ResourceHealthStatus",),
    mutants=("health-unknown", "health-always-well", "forget-request-names"),
)
def test_containers_have_devices_of_different_health(scenario):
    scenario.apply("health/well-and-not.yaml")
    well, not_well = scenario.pod("pod").should_run().containers("well", "not-well")

    well.should_have_health("devices/well", "Healthy")
    not_well.should_have_health("devices/not-well", "Unhealthy")


@requirement(
    "HEALTH-006",
    "The status of a running pod follows its device: it says soon that the device is not well any more, and that it is well again.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("health", "live-control", "identity"),
    gates=("ResourceHealthStatus",),
    exclusive=True,
    mutants=("health-told-once", "health-unknown"),
    covers=("H1", "N29"),
)
def test_the_health_of_a_device_changes(scenario, driver, hardware):
    device = max(driver.devices)
    scenario.apply("basic/chosen-device.yaml", name="pod", wanted=driver.identity(device))
    container = scenario.pod("pod").should_run().container("workload").should_have_health("device", "Healthy")

    hardware.say_health(device, "unhealthy")
    container.should_have_health("device", "Unhealthy")
    hardware.say_health(device, "healthy")

    assert container.should_have_health("device", "Healthy").seen_devices == {device}
