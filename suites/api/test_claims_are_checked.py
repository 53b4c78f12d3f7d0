"""The API server takes claims and templates that can mean something, keeps them as they are, and refuses all others with the reason."""

import pytest

from testbed.conformance import CLUSTER, E2E, MUST, requirement

API = "API reference: ResourceClaim v1 resource.k8s.io"


@requirement(
    "API-001",
    "A claim that cannot mean anything is refused, with the field and the reason.",
    level=MUST,
    tier=E2E,
    source=API,
    gates=("DRAPrioritizedList",),
    about=CLUSTER,
    mutants=("claims-repaired",),
)
@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("api/claim-of-two-kinds.yaml", "exactly one of `exactly` or `firstAvailable` is required"),
        ("api/claim-of-no-kind.yaml", "exactly one of `exactly` or `firstAvailable` is required"),
        ("api/many-requests.yaml", "Too many: 33: must have at most 32 items"),
        ("api/no-class.yaml", "deviceClassName: Required value"),
        ("api/unknown-request-in-constraint.yaml", "must be the name of a request in the claim"),
        ("api/all-with-count.yaml", "must not be specified when allocationMode is 'All'"),
    ],
    ids=["two-kinds", "no-kind", "33-requests", "no-class", "unknown-request", "all-with-count"],
)
def test_a_claim_without_meaning_is_refused(scenario, manifest, words):
    assert words in scenario.should_be_refused(manifest)


@requirement(
    "API-002",
    "What a claim or a template asks for cannot be changed any more.",
    level=MUST,
    tier=E2E,
    source=API,
    about=CLUSTER,
    mutants=("counts-are-one",),
)
@pytest.mark.parametrize("manifest", ["api/claim.yaml", "api/template.yaml"], ids=["claim", "template"])
def test_claims_and_templates_are_immutable(scenario, manifest):
    scenario.apply(manifest, count=1)

    assert "field is immutable" in scenario.should_be_refused(manifest, count=2)
