"""Devices of two drivers in one pod."""

from testbed.conformance import E2E, MUST, requirement


@requirement(
    "MULTI-001",
    "If a claim has devices of several drivers, the driver must prepare its own devices and no others, and the pod must run.",
    level=MUST,
    tier=E2E,
    features=("companion",),
    source="API reference: ResourceClaim v1 resource.k8s.io, DeviceRequestAllocationResult.driver",
    mutants=("no-env", "take-devices-of-other-drivers"),
)
def test_one_claim_for_two_drivers(scenario, driver):
    scenario.apply("companions/one-claim.yaml", other_class=driver.companion.device_class)
    pod = scenario.pod("pod").should_run()

    assert {device.driver for device in pod.devices} == {driver.name, driver.companion.name}
    assert pod.seen_devices == driver.own(pod.devices)


@requirement(
    "MULTI-002",
    "If a pod has claims for devices of several drivers, the driver must prepare its own devices and no others, and the pod must run.",
    level=MUST,
    tier=E2E,
    features=("companion",),
    source="API reference: Pod v1 core, PodSpec.resourceClaims",
    covers=("N18",),
    mutants=("no-env",),
)
def test_one_claim_for_each_driver(scenario, driver):
    scenario.apply("companions/two-claims.yaml", other_class=driver.companion.device_class)
    pod = scenario.pod("pod").should_run()

    assert {device.driver for device in pod.devices} == {driver.name, driver.companion.name}
    assert pod.seen_devices == driver.own(pod.devices)
