"""The API server validates the references from pods to ResourceClaims."""

import pytest

from testbed.conformance import CLUSTER, E2E, MUST, messages, requirement


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
        ("api/pod-claim-without-source.yaml", messages.NO_CLAIM_SOURCE),
        ("api/pod-claim-with-two-sources.yaml", messages.TWO_CLAIM_SOURCES),
        ("api/container-with-unknown-claim.yaml", messages.UNKNOWN_POD_CLAIM),
        ("api/claims-of-the-whole-pod.yaml", messages.POD_LEVEL_CLAIMS),
        ("api/pod-claim-twice.yaml", 'Duplicate value: "device"'),
        ("api/whole-claim-and-request.yaml", 'Duplicate value: "device"'),
        ("api/ephemeral-container-with-claim.yaml", messages.EPHEMERAL_CONTAINER_CLAIMS),
    ],
    ids=[
        *("no-source", "two-sources", "unknown-claim", "whole-pod"),
        *("claim-twice", "whole-claim-and-request", "ephemeral-container"),
    ],
)
def test_an_invalid_pod_is_refused(scenario, manifest, words):
    assert words in scenario.should_be_refused_on_create(manifest)
