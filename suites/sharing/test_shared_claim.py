"""Two pods that share one ResourceClaim."""

from testbed.conformance import E2E, MUST, requirement


@requirement(
    "SHARE-001",
    "Pods that refer to the same ResourceClaim must see the same device.",
    level=MUST,
    tier=E2E,
    source="Kubernetes documentation: Dynamic Resource Allocation, section ResourceClaims and ResourceClaimTemplates",
    features=("shared-claims",),
    covers=("L10",),
    mutants=("no-env",),
)
def test_two_pods_share_one_claim(scenario):
    scenario.apply("sharing/two-pods-one-claim.yaml")
    first, second = scenario.pods("first", "second").should_run()

    assert first.seen_devices == second.seen_devices == scenario.claim("shared").devices
