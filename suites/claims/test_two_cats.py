"""The example with two cats from the Kubernetes documentation of Dynamic Resource Allocation."""

from testbed.conformance import E2E, MUST, requirement


@requirement(
    "CLAIM-001",
    "A pod with two claims from one ResourceClaimTemplate must get one device for each, and each container must see only its own.",
    level=MUST,
    tier=E2E,
    devices=2,
    source="Kubernetes documentation: Allocate Devices to Workloads with DRA",
    features=("per-container",),
    given=("unshared",),
    covers=("L7", "G16"),
    mutants=(
        "share-one-device",
        "no-env",
        "answer-for-the-wrong-claim",
        "one-claim-at-a-time",
        "claims-leak-to-all-containers",
    ),
)
def test_two_claims_from_one_template(scenario):
    scenario.apply("claims/two-cats.yaml")
    pod = scenario.pod("pod-with-cats").should_run()
    first, second = pod.containers("container0", "container1")

    assert first.seen_devices == first.devices
    assert second.seen_devices == second.devices
    assert (len(first.devices), len(second.devices), len(pod.devices)) == (1, 1, 2)
