"""Prioritized lists: requests with alternatives (subrequests)."""

import pytest

from testbed.conformance import CLUSTER, E2E, MUST, NONE, messages, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section Prioritized list"
API = "API reference: ResourceClaim v1 resource.k8s.io, DeviceRequest.firstAvailable"


@requirement(
    "PRIO-001",
    "The first subrequest that can be satisfied must be chosen, and the container must see the devices of that subrequest.",
    level=MUST,
    tier=E2E,
    devices=2,
    source=DOCS,
    gates=("DRAPrioritizedList",),
    given=("unshared",),
    covers=("PL1",),
    mutants=(
        "answer-with-subrequest-names",
        "first-device-only",
        "no-env",
        "refuse-alternatives",
    ),
    counts=(2,),
    features=("one-request",),
)
def test_the_first_alternative_is_taken(scenario):
    scenario.apply("priority/any-of-two.yaml")
    pod = scenario.pod("pod").should_run()

    assert scenario.claim("best").requests == {"device/two"}
    assert len(pod.devices) == 2
    assert pod.seen_devices == pod.devices


@requirement(
    "PRIO-002",
    "If a subrequest cannot be satisfied, the next one must be chosen, and the container must see its device.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    gates=("DRAPrioritizedList",),
    covers=("PL1",),
    mutants=(
        "no-env",
        "refuse-alternatives",
    ),
    counts=(1,),
)
def test_the_second_alternative_is_taken(scenario):
    scenario.apply("priority/second-choice.yaml")
    pod = scenario.pod("pod").should_run()

    assert scenario.claim("best").requests == {"device/common"}
    assert len(pod.devices) == 1
    assert pod.seen_devices == pod.devices


@requirement(
    "PRIO-003",
    "If no subrequest of a request can be satisfied, the pod must be unschedulable.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    gates=("DRAPrioritizedList",),
    about=CLUSTER,
    mutants=("selectors-dropped",),
)
def test_a_pod_waits_when_no_alternative_is_available(scenario):
    scenario.apply("priority/no-choice.yaml")
    pod, claim = scenario.pod("pod").should_be_unschedulable(because=messages.NO_DEVICE_FITS), scenario.claim("best")
    assert pod.devices == NONE

    pod.delete().should_be_gone()
    claim.delete()
    claim.should_be_gone()
    scenario.apply("priority/second-choice.yaml")
    claim.should_be_allocated()


@requirement(
    "PRIO-004",
    "The API server must accept a request with 8 subrequests and reject a request with 9.",
    level=MUST,
    tier=E2E,
    source=API,
    gates=("DRAPrioritizedList",),
    about=CLUSTER,
    mutants=("claims-repaired",),
)
def test_at_most_eight_alternatives(scenario):
    scenario.apply("priority/choices.yaml", choices=range(8))

    assert messages.MORE_THAN_8_ITEMS in scenario.should_be_refused("priority/choices.yaml", choices=range(9))


@requirement(
    "PRIO-005",
    "The allocation must contain the configuration for the chosen subrequest and its request, and not that for other subrequests.",
    level=MUST,
    tier=E2E,
    source="API reference: ResourceClaim v1 resource.k8s.io, DeviceClaimConfiguration.requests",
    gates=("DRAPrioritizedList",),
    about=CLUSTER,
    covers=("PL2",),
    mutants=("configuration-dropped",),
)
def test_only_the_chosen_alternative_is_configured(scenario):
    scenario.apply("priority/configured.yaml")
    scenario.pod("pod").should_be_scheduled()

    assert scenario.claim("best").configured_for == {"common", "any"}


@requirement(
    "PRIO-006",
    "A container that refers to a request with subrequests must see the device of that request and no other.",
    level=MUST,
    tier=E2E,
    devices=2,
    source=DOCS,
    gates=("DRAPrioritizedList",),
    given=("unshared",),
    mutants=("first-device-only", "no-env"),
)
def test_two_requests_with_alternatives(scenario):
    scenario.apply("priority/two-requests.yaml")
    pod, claim = scenario.pod("pod").should_run(), scenario.claim("both")

    assert pod.seen_devices == pod.devices
    assert claim.devices_of("left") & claim.devices_of("right") == NONE


@requirement(
    "PRIO-007",
    "A constraint on a request with subrequests must hold for the device of the chosen subrequest, and "
    "each container must see the device of its request.",
    level=MUST,
    tier=E2E,
    devices=2,
    source="API reference: ResourceClaim v1 resource.k8s.io, DeviceConstraint.requests",
    gates=("DRAPrioritizedList",),
    features=("example-match-attribute",),
    mutants=("first-device-only", "no-env"),
    covers=("PL3",),
    counts=(1,),
)
def test_a_constraint_applies_to_the_chosen_alternative(scenario, driver):
    attribute = driver.examples.match_attribute
    scenario.apply("priority/matching.yaml", attribute=attribute)
    pod, claim = scenario.pod("pod").should_run(), scenario.claim("both")
    (one,), (other,) = claim.devices_of("left"), claim.devices_of("right")

    assert pod.seen_devices == {one, other}
    assert driver.published_value(one, attribute) == driver.published_value(other, attribute)


@requirement(
    "PRIO-008",
    "The driver must apply configuration for the chosen subrequest, or for its request, to that request's device only. "
    "Configuration for other subrequests must have no effect.",
    level=MUST,
    tier=E2E,
    devices=2,
    source=DOCS,
    gates=("DRAPrioritizedList",),
    features=("configuration", "two-configurations"),
    given=("unshared", "unconfigured"),
    mutants=("no-env", "ignores-claim-config", "ignores-config-of-subrequests", "ignores-config-scope"),
    covers=("PL2", "PL4"),
)
@pytest.mark.parametrize("request_name", ["device/common", "device"], ids=["alternative", "request"])
def test_configuration_of_a_request_applies_to_the_chosen_alternative(scenario, request_name):
    scenario.apply("priority/configured-devices.yaml", request=request_name)
    container = scenario.pod("pod").should_run().container("workload")

    assert container.settings_of_devices == ("other",)


@requirement(
    "PRIO-009",
    "If a constraint rules out the devices of a subrequest, the next subrequest, to which the constraint does not apply, must be chosen.",
    level=MUST,
    tier=E2E,
    devices=2,
    source="API reference: ResourceClaim v1 resource.k8s.io, DeviceConstraint.requests",
    gates=("DRAPrioritizedList",),
    features=("identity",),
    given=("unshared", "one-class"),
    mutants=("constraints-dropped", "first-device-only", "no-env"),
    covers=("PL3",),
)
def test_a_constraint_rules_out_an_alternative(scenario, driver):
    unique = driver.identity(max(driver.devices)).full_name
    scenario.apply("priority/ruled-out.yaml", attribute=unique)
    pod = scenario.pod("pod").should_run()

    assert scenario.claim("both").requests == {"left/other", "right"}
    assert pod.seen_devices == pod.devices
