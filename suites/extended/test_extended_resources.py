"""Extended resources: pods request devices of a DeviceClass in their limits, without a claim."""

from testbed.conformance import CLUSTER, E2E, MUST, NONE, messages, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section Extended resource allocation by DRA"
KEP = "KEP-5004, DRA extended resource"
SPECIAL = "resource.kubernetes.io/extended-resource-claim"


@requirement(
    "EXT-001",
    "A pod that requests the extended resource of a DeviceClass in its limits must get and see a device of that class.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("identity",),
    gates=("DRAExtendedResource",),
    mutants=(
        "no-env",
        "share-one-device",
    ),
    covers=("E3",),
    given=("alone", "unconfigured", "one-class"),
    counts=(1,),
)
def test_a_pod_requests_a_device_in_its_limits(scenario, driver):
    device = max(driver.devices)
    wanted = driver.identity(device)
    scenario.apply("extended/class-of-one.yaml", wanted=wanted)
    scenario.apply("extended/pod.yaml", count=1, wanted=wanted)
    pod = scenario.pod("pod").should_run()

    assert pod.extended_claim.devices == {device}
    assert pod.seen_devices == {device}


@requirement(
    "EXT-002",
    "A pod that requests deviceclass.resource.kubernetes.io/CLASS in its limits must get and see a device of the DeviceClass CLASS.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    gates=("DRAExtendedResource",),
    kubernetes="1.35",
    mutants=("no-env",),
    covers=("E4",),
    given=("alone", "unconfigured"),
    counts=(1,),
)
def test_every_class_has_an_implicit_name(scenario):
    scenario.apply("extended/implicit.yaml")
    pod = scenario.pod("pod").should_run()

    assert len(pod.seen_devices) == 1
    assert pod.seen_devices == pod.extended_claim.devices


@requirement(
    "EXT-003",
    "The ResourceClaim that the scheduler creates for extended resources must be owned by the pod, have the annotation "
    "resource.kubernetes.io/extended-resource-claim, and be deleted with the pod.",
    level=MUST,
    tier=E2E,
    source=KEP,
    gates=("DRAExtendedResource",),
    mutants=("unprepare-fails",),
    given=("alone", "unconfigured"),
    counts=(1,),
)
def test_the_claim_belongs_to_the_pod(scenario):
    scenario.apply("extended/class.yaml")
    scenario.apply("extended/pod.yaml", count=1)
    pod = scenario.pod("pod").should_run()
    claim = pod.extended_claim
    assert (claim.owner, claim.annotations[SPECIAL]) == (("Pod", "pod"), "true")

    pod.delete().should_be_gone()
    claim.should_be_gone()


@requirement(
    "EXT-004",
    "A pod with an extended resource must see its device. "
    "When it has succeeded, its ResourceClaim must be deleted, although the pod remains.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=KEP,
    features=("identity",),
    gates=("DRAExtendedResource",),
    mutants=("unprepare-fails",),
    covers=("E8",),
    given=("alone", "unconfigured", "one-class"),
    counts=(1,),
)
def test_the_claim_is_deleted_when_the_pod_has_succeeded(scenario, driver):
    device = max(driver.devices)
    wanted = driver.identity(device)
    scenario.apply("extended/class-of-one.yaml", wanted=wanted)
    scenario.apply("extended/pod-that-ends.yaml", wanted=wanted)
    pod = scenario.pod("pod").should_succeed()

    pod.extended_claim.should_be_gone()

    assert pod.container("workload").printed_devices == {device}


@requirement(
    "EXT-005",
    "A container that requests two devices by an extended resource must get and see two devices.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    devices=2,
    gates=("DRAExtendedResource",),
    given=("unshared", "alone", "unconfigured"),
    mutants=(
        "first-device-only",
        "no-env",
    ),
    counts=(2,),
)
def test_a_pod_requests_two_devices(scenario):
    scenario.apply("extended/class.yaml")
    scenario.apply("extended/pod.yaml", count=2)
    pod = scenario.pod("pod").should_run()

    assert len(pod.seen_devices) == 2
    assert pod.seen_devices == pod.extended_claim.devices


@requirement(
    "EXT-006",
    "Each container must see only the device that it requested by extended resource. A container that requested none must see none.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("per-container", "shared-by-containers"),
    devices=2,
    gates=("DRAExtendedResource",),
    given=("unshared", "alone", "unconfigured"),
    mutants=(
        "forget-request-names",
        "first-device-only",
        "no-env",
    ),
    counts=(1,),
)
def test_each_container_sees_its_own_devices(scenario):
    scenario.apply("extended/class.yaml")
    scenario.apply("extended/two-containers.yaml")
    left, right, without = scenario.pod("pod").should_run().containers("left", "right", "without")

    assert left.seen_devices == left.extended_devices
    assert right.seen_devices == scenario.pod("pod").extended_claim.devices - left.seen_devices
    assert without.reachable_devices == NONE


@requirement(
    "EXT-007",
    "The status of a pod must name the request of its ResourceClaim for each container and extended resource.",
    level=MUST,
    tier=E2E,
    source="API reference: Pod v1 core, PodStatus.extendedResourceClaimStatus",
    devices=2,
    gates=("DRAExtendedResource",),
    about=CLUSTER,
    covers=("E13",),
    mutants=("extended-requests-untold", "extended-requests-misnamed"),
    given=("alone", "unconfigured"),
    counts=(1,),
    features=("shared-by-containers",),
)
def test_the_status_names_the_request_of_each_container(scenario):
    scenario.apply("extended/class.yaml")
    scenario.apply("extended/two-containers.yaml")
    pod, resource = scenario.pod("pod").should_be_scheduled(), f"example.com/{scenario.namespace}"

    assert {(container, asked) for container, asked, _ in pod.extended_requests} == {
        ("left", resource),
        ("right", resource),
    }
    assert pod.extended_claim.requests == {request for _, _, request in pod.extended_requests}


@requirement(
    "EXT-008",
    "An init container that requests an extended resource must get and see its device, as other containers do.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("per-container", "shared-by-containers"),
    devices=2,
    gates=("DRAExtendedResource",),
    mutants=("no-env",),
    given=("alone", "unconfigured"),
    counts=(1,),
)
def test_init_containers_see_their_devices(scenario):
    scenario.apply("extended/class.yaml")
    scenario.apply("extended/init-container.yaml")
    first, workload = scenario.pod("pod").should_run().containers("first", "workload")

    assert len(first.extended_devices) == len(workload.extended_devices) == 1
    assert first.printed_devices == first.extended_devices
    assert workload.seen_devices == workload.extended_devices


@requirement(
    "EXT-009",
    "When the devices of an extended resource are in use, another pod that requests it must wait. "
    "Once a device is released, the pod must run and see it.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("identity",),
    gates=("DRAExtendedResource",),
    given=("unshared", "alone", "unconfigured", "one-class"),
    mutants=(
        "unprepare-fails",
        "never-give-back",
    ),
    covers=("E11",),
    counts=(1,),
)
def test_a_pod_waits_when_all_devices_are_allocated(scenario, driver):
    device = max(driver.devices)
    wanted = driver.identity(device)
    scenario.apply("extended/class-of-one.yaml", wanted=wanted)
    scenario.apply("extended/pod.yaml", count=1, wanted=wanted)
    pod = scenario.pod("pod").should_run()
    scenario.apply("extended/second-pod.yaml", wanted=wanted)
    second = scenario.pod("second").should_be_unschedulable(because=messages.NO_DEVICE_FITS)

    pod.delete().should_be_gone()

    assert second.should_run().seen_devices == {device}


@requirement(
    "EXT-010",
    "A pod that requests zero devices by an extended resource must run without a ResourceClaim.",
    level=MUST,
    tier=E2E,
    source=KEP,
    gates=("DRAExtendedResource",),
    about=CLUSTER,
    covers=("E14",),
    unproven="the scheduler creates these claims, and no admission policy can make it create one for a pod that requests none",
    given=("alone", "unconfigured"),
    counts=(1,),
)
def test_a_quantity_of_zero_makes_no_claim(scenario):
    scenario.apply("extended/class.yaml")
    scenario.apply("extended/pod.yaml", count=0)

    scenario.apply("extended/second-pod.yaml")

    assert scenario.pod("pod").should_run().extended_claim is None
    assert scenario.pod("second").should_be_scheduled().extended_claim


@requirement(
    "EXT-011",
    "A pod that requests an unknown extended resource must wait. Once a DeviceClass provides it, the pod must run and see its device.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    gates=("DRAExtendedResource",),
    mutants=("no-env",),
    covers=("E15",),
    given=("alone", "unconfigured"),
    counts=(1,),
)
def test_a_pod_waits_for_a_class(scenario):
    scenario.apply("extended/pod.yaml", count=1)
    pod = scenario.pod("pod").should_be_unschedulable(because=f"Insufficient example.com/{scenario.namespace}")

    scenario.apply("extended/class.yaml")

    assert len(pod.should_run().seen_devices) == 1
    assert pod.seen_devices == pod.extended_claim.devices


@requirement(
    "EXT-012",
    "A container that requests an extended resource and refers to a claim must see the devices of both.",
    level=MUST,
    tier=E2E,
    source=KEP,
    devices=2,
    gates=("DRAExtendedResource",),
    mutants=(
        "no-env",
        "share-one-device",
    ),
    covers=("E18",),
    given=("alone", "unconfigured"),
    counts=(1,),
    features=("several-claims",),
)
def test_an_extended_resource_and_a_claim(scenario):
    scenario.apply("extended/class.yaml")
    scenario.apply("extended/with-claim.yaml")
    pod = scenario.pod("pod").should_run()

    assert len(pod.extended_claim.devices) == len(pod.devices) == 1
    assert pod.seen_devices == pod.devices | pod.extended_claim.devices
