"""Extended resources of several classes in one container, and of a pod that fails."""

from testbed.conformance import E2E, MUST, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section Extended resource allocation by DRA"
KEP = "KEP-5004, DRA extended resource"


@requirement(
    "EXT-025",
    "When a pod with an extended resource has failed, its ResourceClaim must be deleted, although the pod remains.",
    level=MUST,
    tier=E2E,
    source=KEP,
    gates=("DRAExtendedResource",),
    mutants=("unprepare-fails",),
    covers=("E9",),
    given=("alone", "unconfigured"),
    counts=(1,),
)
def test_the_claim_is_deleted_when_the_pod_has_failed(scenario):
    scenario.apply("extended/class.yaml")
    scenario.apply("extended/pod-that-fails.yaml")
    pod = scenario.pod("pod").should_end()

    pod.extended_claim.should_be_gone()

    assert pod.phase == "Failed"


@requirement(
    "EXT-026",
    "A container that requests one device by an extendedResourceName and one by the implicit resource "
    "name of another DeviceClass must get and see both.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("identity",),
    devices=2,
    gates=("DRAExtendedResource",),
    given=("local", "unshared", "alone", "unconfigured", "one-class"),
    kubernetes="1.35",
    mutants=(
        "first-device-only",
        "no-env",
    ),
    covers=("E2",),
    counts=(1,),
)
def test_a_pod_uses_explicit_and_implicit_names(scenario, driver, node):
    device = max(driver.devices_on(node))
    wanted = driver.identity(device)
    scenario.apply("extended/class-of-one.yaml", wanted=wanted)
    scenario.apply("extended/two-kinds.yaml", wanted=wanted)
    pod = scenario.pod("pod").should_run()

    assert pod.seen_devices == pod.extended_claim.devices
    assert pod.seen_devices > {device}


@requirement(
    "EXT-027",
    "A container that requests three extended resources must get a device of each DeviceClass and see all three.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("identity",),
    devices=3,
    gates=("DRAExtendedResource",),
    given=("local", "unshared", "alone", "unconfigured", "one-class"),
    mutants=(
        "first-device-only",
        "no-env",
    ),
    covers=("E5",),
    counts=(1,),
)
def test_a_pod_uses_three_resources(scenario, driver, node):
    one, two, three, *_ = sorted(driver.devices_on(node))
    scenario.apply("extended/class-of-one.yaml", unique=f"{scenario.namespace}-1", wanted=driver.identity(one))
    scenario.apply("extended/class-of-one.yaml", unique=f"{scenario.namespace}-2", wanted=driver.identity(two))
    scenario.apply("extended/class-of-one.yaml", unique=f"{scenario.namespace}-3", wanted=driver.identity(three))
    scenario.apply("extended/three-resources.yaml", wanted=driver.identity(one))

    assert scenario.pod("pod").should_run().seen_devices == {one, two, three}
