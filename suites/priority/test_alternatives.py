"""Prioritized lists: a request with alternatives, of which the first that can be had is taken."""

from testbed.conformance import CLUSTER, E2E, MUST, requirement

DOCS = "kubernetes.io: Dynamic Resource Allocation, Prioritized list"
API = "API reference: ResourceClaim v1 resource.k8s.io, DeviceRequest.firstAvailable"


@requirement(
    "PRIO-001",
    "The first alternative that can be had is taken, and the container sees the devices of that one.",
    level=MUST,
    tier=E2E,
    devices=2,
    source=DOCS,
    covers=("PL1",),
    mutants=("answer-with-subrequest-names", "first-device-only", "no-env"),
)
def test_the_first_alternative_is_taken(scenario):
    scenario.apply("priority/any-of-two.yaml")
    pod = scenario.pod("pod").should_run()

    assert scenario.claim("best").requests == {"device/two"}
    assert len(pod.devices) == 2
    assert pod.seen_devices == pod.devices


@requirement(
    "PRIO-002",
    "Where an alternative cannot be had, the next one is taken, and the container sees its device.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    covers=("PL1",),
    mutants=("answer-with-subrequest-names", "no-env"),
)
def test_the_second_alternative_is_taken(scenario):
    scenario.apply("priority/second-choice.yaml")
    pod = scenario.pod("pod").should_run()

    assert scenario.claim("best").requests == {"device/common"}
    assert len(pod.devices) == 1
    assert pod.seen_devices == pod.devices


@requirement(
    "PRIO-003",
    "Where none of the alternatives can be had, the pod stays pending.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    about=CLUSTER,
)
def test_no_alternative_can_be_had(scenario):
    scenario.apply("priority/no-choice.yaml")
    pod = scenario.pod("pod").should_be_unschedulable(because="cannot allocate all claims")

    assert pod.devices == frozenset()


@requirement(
    "PRIO-004",
    "A request has at most 8 alternatives; one more is refused.",
    level=MUST,
    tier=E2E,
    source=API,
    about=CLUSTER,
)
def test_at_most_eight_alternatives(scenario):
    assert "Too many: 9: must have at most 8 items" in scenario.should_be_refused("priority/nine-choices.yaml")
