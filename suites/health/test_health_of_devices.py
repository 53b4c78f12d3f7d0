"""Device health in the status of pods, as drivers report it to the kubelet."""

from testbed.conformance import DISRUPTIVE, E2E, MUST, SHOULD, Capability, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section Device Health Monitoring"
KEP = "KEP-4680, resource health in the status of a pod"


@requirement(
    "HEALTH-001",
    "The status of a running pod must report a healthy device as Healthy.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("health",),
    gates=("ResourceHealthStatus",),
    mutants=("health-unknown",),
)
def test_a_healthy_device_is_reported(scenario):
    scenario.apply("basic/claim-by-name.yaml")
    pod = scenario.pod("pod").should_run()
    container = pod.container("workload").should_have_health("device", "Healthy")

    assert container.seen_devices == pod.devices


@requirement(
    "HEALTH-002",
    "The status of a running pod must report an unhealthy device as Unhealthy, and the pod must keep running and see the device.",
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
def test_an_unhealthy_device_is_reported(scenario, driver):
    scenario.apply("basic/claim-by-name.yaml", device_class=driver.classes.unhealthy)
    pod = scenario.pod("pod").should_run()
    pod.container("workload").should_have_health("device", "Unhealthy")

    assert pod.should_stay_running().seen_devices == pod.devices


@requirement(
    "HEALTH-003",
    "The status of a running pod should say why a device is unhealthy.",
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
def test_the_status_says_why_a_device_is_unhealthy(scenario, driver):
    scenario.apply("basic/claim-by-name.yaml", device_class=driver.classes.unhealthy)
    pod = scenario.pod("pod").should_run()
    messages = pod.container("workload").should_have_health("device", "Unhealthy").health_messages

    assert messages
    assert all(messages), "the status does not say why the device is unhealthy"


@requirement(
    "HEALTH-004",
    "The status of a container that refers to one request of a claim must report the health of that request's device only.",
    level=MUST,
    tier=E2E,
    source=KEP,
    devices=2,
    features=("health", "one-request", "shared-by-containers"),
    gates=("ResourceHealthStatus",),
    mutants=(
        "health-unknown",
        "first-device-only",
    ),
)
def test_each_container_has_the_health_of_its_own_device(scenario):
    scenario.apply("basic/two-requests.yaml")
    left, right = scenario.pod("pod").should_run().containers("left", "right")
    left.should_have_health("devices/left", "Healthy")
    right.should_have_health("devices/right", "Healthy")

    assert (len(left.health_messages), len(right.health_messages)) == (1, 1)


@requirement(
    "HEALTH-005",
    "If one device of a claim is healthy and another is not, the status of each container must report the health of its own device.",
    level=MUST,
    tier=E2E,
    source=KEP,
    devices=2,
    features=("health", "unhealthy", "one-request", "shared-by-containers"),
    gates=("ResourceHealthStatus",),
    mutants=("health-unknown", "health-always-well", "forget-request-names"),
)
def test_containers_have_devices_of_different_health(scenario):
    scenario.apply("health/well-and-not.yaml")
    healthy, unhealthy = scenario.pod("pod").should_run().containers("well", "not-well")

    healthy.should_have_health("devices/well", "Healthy")
    unhealthy.should_have_health("devices/not-well", "Unhealthy")


@requirement(
    "HEALTH-006",
    "When a device becomes unhealthy or recovers, the status of a running pod that uses it must show the change.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("health", "live-control", "identity"),
    gates=("ResourceHealthStatus",),
    exclusive=True,
    mutants=("health-told-once", "health-unknown"),
    covers=("H1", "N29"),
    counts=(1,),
    given=("one-class",),
)
def test_the_health_of_a_device_changes(scenario, driver, hardware):
    device = max(driver.devices)
    scenario.apply("basic/chosen-device.yaml", name="pod", wanted=driver.identity(device))
    container = scenario.pod("pod").should_run().container("workload").should_have_health("device", "Healthy")

    hardware.set_health(device, "unhealthy")
    container.should_have_health("device", "Unhealthy")
    hardware.set_health(device, "healthy")

    assert container.should_have_health("device", "Healthy").seen_devices == {device}


@requirement(
    "HEALTH-014",
    "The status of a running pod must report its device as Unknown while the driver is stopped, and as Healthy when it is back.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=(Capability.CHANGE_DRIVER,),
    source=KEP,
    features=("health",),
    gates=("ResourceHealthStatus",),
    mutants=("health-unknown-after-a-restart",),
    covers=("N33",),
)
def test_health_while_the_driver_is_away(scenario, daemon, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()
    container = pod.container("workload").should_have_health("device", "Healthy")

    daemon.stop_on(node)
    pod.trigger_sync()
    container.should_have_health("device", "Unknown")
    daemon.start_again()
    container.should_have_health("device", "Healthy")

    assert pod.should_stay_running().seen_devices == pod.devices


@requirement(
    "HEALTH-015",
    "The status of each container that has a share of a healthy device must report the device as Healthy.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source=KEP,
    features=("health", "capacity", "identity", "one-request", "shared-by-containers"),
    gates=("ResourceHealthStatus", "DRAConsumableCapacity"),
    mutants=("health-unknown", "sharing-missing"),
    covers=("N37", "G22"),
)
def test_shares_of_a_healthy_device_are_reported(scenario, driver, node):
    device, *_ = driver.shareable_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("health/two-shares-of-one-claim.yaml", **wanted)
    left, right = scenario.pod("pod").should_run().containers("left", "right")

    left.should_have_health("devices/left", "Healthy")
    right.should_have_health("devices/right", "Healthy")


@requirement(
    "HEALTH-016",
    "The status of pods that start at the same time with generated claims must report the health of "
    "their devices, also after one of the pods has ended.",
    level=MUST,
    tier=E2E,
    devices=3,
    spread=True,
    source=KEP,
    features=("health",),
    gates=("ResourceHealthStatus",),
    kubernetes="1.35",
    mutants=("health-unknown",),
    covers=("N35", "#134875"),
)
def test_health_is_reported_after_another_pod_is_deleted(scenario):
    scenario.apply("health/three-pods.yaml")
    first, second, third = scenario.pods("first", "second", "third").should_run()
    first.container("workload").should_have_health("device", "Healthy")

    first.delete().should_be_gone()

    second.trigger_sync().container("workload").should_have_health("device", "Healthy")
    third.trigger_sync().container("workload").should_have_health("device", "Healthy")
