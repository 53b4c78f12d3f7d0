"""CEL selectors on the attributes and capacities that a driver publishes."""

import pytest

from testbed.conformance import CLUSTER, E2E, MUST, NONE, messages, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section ResourceClaims and ResourceClaimTemplates"
API = "API reference: ResourceClaim v1 resource.k8s.io, CELDeviceSelector"


@requirement(
    "SELECT-001",
    "A request with a selector for an attribute value of one device must get that device, and the container must see it.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("identity",),
    mutants=("share-one-device", "no-env", "publish-attributes-of-another-device"),
    counts=(1,),
    given=("one-class",),
)
def test_an_attribute_chooses_a_device(scenario, driver):
    device = max(driver.devices)
    scenario.apply("selection/by-attribute.yaml", wanted=driver.identity(device))
    pod = scenario.pod("pod").should_run()

    assert pod.seen_devices == {device}


@requirement(
    "SELECT-002",
    "Two requests of a claim with different selectors must get the devices that they select, and their pod must see them.",
    level=MUST,
    tier=E2E,
    devices=2,
    exclusive=True,
    source=DOCS,
    features=("identity",),
    given=("local", "one-class"),
    mutants=("share-one-device", "first-device-only"),
    counts=(1,),
)
def test_two_requests_with_different_selectors(scenario, driver, node):
    first, last = min(driver.devices_on(node)), max(driver.devices_on(node))
    scenario.apply("selection/two-different.yaml", left=driver.identity(last), right=driver.identity(first))
    pod, claim = scenario.pod("pod").should_run(), scenario.claim("chosen")

    assert (claim.devices_of("left"), claim.devices_of("right")) == ({last}, {first})
    assert pod.seen_devices == {first, last}


@requirement(
    "SELECT-003",
    "A request must get only a device that matches all its selectors. If there is none, the pod must be unschedulable.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("identity",),
    mutants=("share-one-device", "no-env", "publish-attributes-of-another-device", "last-selector-counts"),
    counts=(1,),
    given=("one-class",),
)
def test_all_selectors_have_to_be_true(scenario, driver):
    device = max(driver.devices)
    scenario.apply("selection/contradictory.yaml", wanted=driver.identity(device))
    scenario.pod("contradictory").should_be_unschedulable(because=messages.NO_DEVICE_FITS)
    scenario.apply("selection/two-selectors.yaml", wanted=driver.identity(device))

    assert scenario.pod("pod").should_run().seen_devices == {device}


@requirement(
    "SELECT-004",
    "A claim must get only a device that matches the selectors of its DeviceClass, and the container must see it.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("identity",),
    mutants=("share-one-device", "no-env", "publish-attributes-of-another-device"),
    counts=(1,),
    given=("one-class",),
)
def test_a_class_chooses_devices(scenario, driver):
    device = max(driver.devices)
    scenario.apply("selection/own-class.yaml", wanted=driver.identity(device))

    assert scenario.pod("pod").should_run().seen_devices == {device}


@requirement(
    "SELECT-005",
    "If the selectors of a DeviceClass and a ResourceClaim contradict each other, the pod must be unschedulable.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("identity",),
    about=CLUSTER,
    mutants=("selectors-dropped",),
    counts=(1,),
    given=("one-class",),
)
def test_selectors_of_class_and_claim_both_apply(scenario, driver):
    device, claim = max(driver.devices), scenario.claim("chosen")
    scenario.apply("selection/class-and-claim.yaml", wanted=driver.identity(device))
    pod = scenario.pod("pod").should_be_unschedulable(because=messages.NO_DEVICE_FITS)
    assert pod.devices == NONE

    pod.delete().should_be_gone()
    claim.delete()
    claim.should_be_gone()
    scenario.apply("selection/own-class.yaml", wanted=driver.identity(device))
    assert claim.should_be_allocated().devices == {device}


@requirement(
    "SELECT-006",
    "A selector for a minimum capacity must select a device with at least that capacity. If there is none, the pod must be unschedulable.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("example-capacity",),
    mutants=("no-env", "selectors-dropped"),
    counts=(1,),
    given=("one-class",),
)
def test_a_capacity_chooses_a_device(scenario, driver):
    capacity, most = driver.examples.capacity, max(driver.devices)
    scenario.apply("selection/more-than-there-is.yaml", wanted=driver.more_than_any_device_has(capacity))
    scenario.pod("greedy").should_be_unschedulable(because=messages.NO_DEVICE_FITS)
    scenario.apply("selection/by-capacity.yaml", wanted=driver.published_value(most, capacity))
    pod = scenario.pod("pod").should_run()

    (chosen,) = pod.devices

    assert pod.seen_devices == {chosen}
    assert driver.published_value(chosen, capacity).amount >= driver.published_value(most, capacity).amount


@requirement(
    "SELECT-007",
    "A request with allocationMode All and a selector must get every matching device of the node, and no others.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source="API reference: ResourceClaim v1 resource.k8s.io, ExactDeviceRequest.allocationMode",
    features=("example-attribute",),
    given=("local", "few", "one-class"),
    mutants=("first-device-only", "no-env"),
    counts=("all",),
)
def test_all_devices_with_an_attribute(scenario, driver):
    wanted = driver.published_value(max(driver.devices), driver.examples.attribute)
    scenario.apply("selection/all-by-attribute.yaml", wanted=wanted)
    pod = scenario.pod("pod").should_run()

    assert pod.devices == driver.devices_with_value(wanted, pod.node)
    assert pod.seen_devices == pod.devices


@requirement(
    "SELECT-008",
    "If a selector reads an attribute that a device does not have, the pod must be unschedulable, and its status must say why.",
    level=MUST,
    tier=E2E,
    source=API,
    covers=("S1",),
    about=CLUSTER,
    mutants=("selectors-dropped",),
)
def test_an_attribute_that_no_device_has(scenario):
    scenario.apply("selection/selector.yaml", expression='device.attributes["no.such.example"].nothing == "x"')
    pod = scenario.pod("pod").should_be_unschedulable(because="CEL runtime error: no such key: nothing")

    assert pod.devices == NONE


@requirement(
    "SELECT-009",
    "The API server must reject a selector that is not valid CEL, does not return a boolean, is too long or is too complex, and say why.",
    level=MUST,
    tier=E2E,
    source=API,
    about=CLUSTER,
    mutants=("selectors-dropped",),
)
@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("device.driver ==", messages.CEL_COMPILATION_FAILED),
        ("machine.driver == 'x'", "undeclared reference to 'machine'"),
        ("device.driver", messages.CEL_NOT_BOOL),
        ("true" + " || true" * 1500, messages.TOO_LONG),
        ("[1, 2, 3, 4, 5, 6, 7, 8].all(n, " * 7 + "n > 0" + ")" * 7, messages.CEL_TOO_COMPLEX),
    ],
    ids=["syntax", "unknown-variable", "no-condition", "too-long", "too-complex"],
)
def test_a_selector_is_checked(scenario, expression, words):
    assert words in scenario.should_be_refused("selection/selector.yaml", expression=expression)
