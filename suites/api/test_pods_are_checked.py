"""The API server validates the references from pods to ResourceClaims."""

import pytest

from testbed.conformance import CLUSTER, E2E, MUST, requirement


@requirement(
    "API-010",
    "The API server must reject a pod whose references to claims are incomplete, ambiguous or "
    "not allowed, and the error must say what is wrong.",
    level=MUST,
    tier=E2E,
    source="API reference: Pod v1 core, PodSpec.resourceClaims and ResourceRequirements.claims",
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
)
@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("api/pod-claim-without-source.yaml", "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
        ("api/pod-claim-with-two-sources.yaml", "at most one of `resourceClaimName` or `resourceClaimTemplateName`"),
        ("api/container-with-unknown-claim.yaml", "must be one of the names in pod.spec.resourceClaims"),
        ("api/claims-of-the-whole-pod.yaml", "claims may not be set for Resources at pod-level"),
        ("api/pod-claim-twice.yaml", 'Duplicate value: "device"'),
        ("api/whole-claim-and-request.yaml", 'Duplicate value: "device"'),
        ("api/ephemeral-container-with-claim.yaml", "cannot be set for an Ephemeral Container"),
    ],
    ids=[
        *("no-source", "two-sources", "unknown-claim", "whole-pod"),
        *("claim-twice", "whole-claim-and-request", "ephemeral-container"),
    ],
)
def test_an_invalid_pod_is_refused(scenario, manifest, words):
    assert words in scenario.should_be_refused_on_create(manifest)
