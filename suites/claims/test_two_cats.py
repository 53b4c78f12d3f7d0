"""The example with two cats from the Kubernetes documentation of Dynamic Resource Allocation."""

from testbed.conformance import E2E, MUST, NONE, requirement


@requirement(
    "CLAIM-001",
    "A pod with two claims from one ResourceClaimTemplate must get a device for each and see them both.",
    level=MUST,
    tier=E2E,
    devices=2,
    source="Kubernetes documentation: Allocate Devices to Workloads with DRA",
    given=("unshared",),
    covers=("L7", "G16"),
    mutants=(
        "share-one-device",
        "no-env",
        "answer-for-the-wrong-claim",
        "one-claim-at-a-time",
    ),
)
def test_two_claims_from_one_template(scenario):
    scenario.apply("claims/two-cats.yaml")
    pod = scenario.pod("pod-with-cats").should_run()
    first, second = pod.containers("container0", "container1")

    assert first.seen_devices >= first.devices
    assert second.seen_devices >= second.devices
    assert pod.seen_devices == pod.devices


@requirement(
    "CLAIM-030",
    "If each container of a pod refers to a claim of its own, each must see the device of its own claim and no other.",
    level=MUST,
    tier=E2E,
    devices=2,
    source="Kubernetes documentation: Allocate Devices to Workloads with DRA",
    features=("per-container",),
    given=("unshared",),
    covers=("L7", "G16"),
    mutants=("share-one-device", "no-env", "claims-leak-to-all-containers"),
)
def test_each_container_sees_only_its_own_claim(scenario):
    scenario.apply("claims/two-cats.yaml")
    first, second = scenario.pod("pod-with-cats").should_run().containers("container0", "container1")

    assert first.seen_devices == first.devices
    assert second.seen_devices == second.devices
    assert first.devices & second.devices == NONE
