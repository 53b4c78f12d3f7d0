"""Requests for several devices, and constraints between devices."""

from testbed.conformance import CLUSTER, E2E, MUST, NONE, messages, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section ResourceClaims and ResourceClaimTemplates"
COUNT = "API reference: ResourceClaim v1 resource.k8s.io, ExactDeviceRequest.count"
MATCH = "API reference: ResourceClaim v1 resource.k8s.io, DeviceConstraint.matchAttribute"


@requirement(
    "SELECT-020",
    "A request for two devices must get two different devices, and the container must see both.",
    level=MUST,
    tier=E2E,
    devices=2,
    source=COUNT,
    given=("unshared",),
    covers=("G4",),
    mutants=("first-device-only", "share-one-device", "no-env"),
    counts=(2,),
)
def test_a_claim_gets_several_devices(scenario):
    scenario.apply("basic/several.yaml", count=2)
    pod = scenario.pod("pod").should_run()

    assert len(pod.devices) == 2
    assert pod.seen_devices == pod.devices


@requirement(
    "SELECT-021",
    "A request with allocationMode All must get every device of the node, and the container must see them all.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source="API reference: ResourceClaim v1 resource.k8s.io, ExactDeviceRequest.allocationMode",
    given=("local", "few", "one-class"),
    covers=("G1",),
    mutants=("first-device-only", "no-env"),
    counts=("all",),
)
def test_a_claim_gets_all_devices_of_a_node(scenario, driver):
    scenario.apply("selection/all.yaml")
    pod = scenario.pod("pod").should_run()

    assert pod.seen_devices == driver.devices_on(pod.node)


@requirement(
    "SELECT-022",
    "If fewer devices match than a request asks for, the pod must be unschedulable and get no device.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("identity",),
    given=("unshared", "one-class"),
    about=CLUSTER,
    mutants=(
        "selectors-dropped",
        "counts-are-one",
    ),
    counts=(1, 2),
)
def test_more_devices_than_there_are(scenario, driver):
    device = max(driver.devices)
    scenario.apply("selection/two-of-one.yaml", wanted=driver.identity(device))
    pod = scenario.pod("pod").should_be_unschedulable(because=messages.NO_DEVICE_FITS)
    assert pod.devices == NONE

    scenario.apply("basic/chosen-device.yaml", name="one", wanted=driver.identity(device))
    assert scenario.claim("one").should_be_allocated().devices == {device}


@requirement(
    "SELECT-023",
    "A claim must not get more than 32 devices. If it requests more, the pod must be unschedulable, and its status must say why.",
    level=MUST,
    tier=E2E,
    source=COUNT,
    about=CLUSTER,
    mutants=("counts-are-one",),
)
def test_a_claim_gets_at_most_32_devices(scenario):
    scenario.apply("selection/so-many-of-none.yaml")
    scenario.pod("allowed").should_be_unschedulable(because=messages.NO_DEVICE_FITS)
    scenario.apply("basic/several.yaml", count=33)
    pod = scenario.pod("pod").should_be_unschedulable(because=messages.ABOVE_CLAIM_LIMIT)

    assert pod.devices == NONE


@requirement(
    "SELECT-024",
    "The API server must reject a negative device count, and store a count of 0 or no count as 1.",
    level=MUST,
    tier=E2E,
    source=COUNT,
    about=CLUSTER,
    mutants=("counts-are-one",),
    counts=(1,),
)
def test_a_count_below_one(scenario):
    assert messages.NOT_POSITIVE in scenario.should_be_refused("basic/several.yaml", count=-1)

    scenario.apply("selection/no-count.yaml")

    assert scenario.claim("zero").requested_counts == scenario.claim("silent").requested_counts == (1,)


@requirement(
    "SELECT-025",
    "The devices of one request under a matchAttribute constraint must have the same value of that "
    "attribute, and the container must see them all.",
    level=MUST,
    tier=E2E,
    devices=2,
    source=MATCH,
    covers=("G2",),
    features=("example-match-attribute",),
    given=("unshared",),
    mutants=("first-device-only", "no-env"),
    counts=(2,),
)
def test_devices_of_a_request_match(scenario, driver):
    attribute = driver.examples.match_attribute
    scenario.apply("selection/matching.yaml", attribute=attribute)
    pod = scenario.pod("pod").should_run()
    one, other = pod.devices

    assert pod.seen_devices == {one, other}
    assert driver.published_value(one, attribute) == driver.published_value(other, attribute)


@requirement(
    "SELECT-026",
    "The devices of several requests under a matchAttribute constraint must have the same value of that "
    "attribute, and their pod must see them.",
    level=MUST,
    tier=E2E,
    devices=2,
    source=MATCH,
    covers=("G2",),
    features=("example-match-attribute",),
    mutants=("first-device-only", "no-env"),
    counts=(1,),
)
def test_devices_of_several_requests_match(scenario, driver):
    attribute = driver.examples.match_attribute
    scenario.apply("selection/matching-requests.yaml", attribute=attribute)
    pod, claim = scenario.pod("pod").should_run(), scenario.claim("chosen")
    (one,), (other,) = claim.devices_of("left"), claim.devices_of("right")

    assert pod.seen_devices == {one, other}
    assert driver.published_value(one, attribute) == driver.published_value(other, attribute)


@requirement(
    "SELECT-027",
    "If no two devices have the same value of the attribute of a matchAttribute constraint, the pod must be unschedulable.",
    level=MUST,
    tier=E2E,
    devices=2,
    source=MATCH,
    features=("identity",),
    given=("unshared", "one-class"),
    about=CLUSTER,
    mutants=("constraints-dropped",),
    counts=(2,),
)
def test_no_two_devices_match(scenario, driver):
    unique = driver.identity(max(driver.devices)).full_name
    scenario.apply("selection/matching.yaml", attribute=unique)
    pod, claim = scenario.pod("pod").should_be_unschedulable(because=messages.NO_DEVICE_FITS), scenario.claim("chosen")
    assert pod.devices == NONE

    pod.delete().should_be_gone()
    claim.delete()
    claim.should_be_gone()
    scenario.apply("basic/several.yaml", count=2)
    assert len(claim.should_be_allocated().devices) == 2
