"""The API server validates ResourceClaims and ResourceClaimTemplates, and keeps them immutable."""

import pytest

from testbed.conformance import CLUSTER, E2E, MUST, messages, requirement

API = "API reference: ResourceClaim v1 resource.k8s.io"


@requirement(
    "API-001",
    "The API server must reject a ResourceClaim with missing, contradictory or too many fields, and the error must say what is wrong.",
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
        ("api/claim-of-two-kinds.yaml", messages.ONE_KIND_OF_REQUEST),
        ("api/claim-of-no-kind.yaml", messages.ONE_KIND_OF_REQUEST),
        ("api/many-requests.yaml", messages.MORE_THAN_32_ITEMS),
        ("api/many-constraints.yaml", messages.MORE_THAN_32_ITEMS),
        ("api/many-configurations.yaml", messages.MORE_THAN_32_ITEMS),
        ("api/many-selectors.yaml", messages.MORE_THAN_32_ITEMS),
        ("api/no-class.yaml", messages.DEVICE_CLASS_REQUIRED),
        ("api/unknown-request-in-constraint.yaml", messages.UNKNOWN_REQUEST),
        ("api/all-with-count.yaml", messages.COUNT_WITH_ALL),
        ("api/request-twice.yaml", messages.DUPLICATE),
        ("api/no-parameters.yaml", messages.PARAMETERS_REQUIRED),
        ("api/long-parameters.yaml", messages.PARAMETERS_TOO_LONG),
        ("api/plain-parameters.yaml", messages.NOT_JSON_OBJECT),
    ],
    ids=[
        *("two-kinds", "no-kind", "33-requests", "33-constraints", "33-configurations", "33-selectors", "no-class"),
        *("unknown-request", "all-with-count", "request-twice", "no-parameters", "long-parameters"),
        "plain-parameters",
    ],
)
def test_an_invalid_claim_is_refused(scenario, manifest, words):
    assert words in scenario.should_be_refused_on_create(manifest)


@requirement(
    "API-002",
    "The API server must reject changes to the spec of a ResourceClaim or ResourceClaimTemplate.",
    level=MUST,
    tier=E2E,
    source=API,
    about=CLUSTER,
    mutants=("counts-are-one",),
)
@pytest.mark.parametrize("manifest", ["api/claim.yaml", "api/template.yaml"], ids=["claim", "template"])
def test_claims_and_templates_are_immutable(scenario, manifest):
    scenario.apply(manifest, count=1)

    assert messages.IMMUTABLE in scenario.should_be_refused(manifest, count=2)


@requirement(
    "API-003",
    "The API server must reject a change of the devices in the allocation of a ResourceClaim.",
    level=MUST,
    tier=E2E,
    source="API reference: ResourceClaim v1 resource.k8s.io, ResourceClaimStatus.allocation",
    about=CLUSTER,
    mutants=("allocations-kept",),
)
def test_an_allocation_is_immutable(scenario):
    scenario.apply("api/claim.yaml", count=1)
    given = {"claim": "fixed", "node": "nowhere", "pool": "nobodys"}
    scenario.apply_status("basic/allocation.yaml", **given, name="one")

    refusal = scenario.status_should_be_refused("basic/allocation.yaml", **given, name="other")

    assert messages.INVALID_ALLOCATION in refusal
