"""Admin access is allowed only in namespaces that an administrator has labelled for it."""

import pytest

from testbed.conformance import CLUSTER, E2E, MUST, messages, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section Admin access"
LABEL = "resource.kubernetes.io/admin-access"
REFUSAL = messages.ADMIN_ACCESS_NOT_ENABLED


@requirement(
    "ADMIN-001",
    "The API server must reject a ResourceClaim that requests admin access in a namespace "
    "without the label resource.kubernetes.io/admin-access.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    gates=("DRAAdminAccess",),
    covers=("AA1",),
    about=CLUSTER,
    mutants=(
        "admin-label-everywhere",
        "admin-access-dropped",
    ),
)
def test_a_claim_is_refused_without_the_label(scenario):
    assert REFUSAL in scenario.should_be_refused("admin_access/claim.yaml")


@requirement(
    "ADMIN-002",
    "The API server must reject a ResourceClaimTemplate that requests admin access in a namespace "
    "without the label resource.kubernetes.io/admin-access.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    gates=("DRAAdminAccess",),
    covers=("AA1",),
    about=CLUSTER,
    mutants=(
        "admin-label-everywhere",
        "admin-access-dropped",
    ),
)
def test_a_template_is_refused_without_the_label(scenario):
    assert REFUSAL in scenario.should_be_refused("admin_access/template.yaml")


@requirement(
    "ADMIN-003",
    "The API server must reject a ResourceClaim that requests admin access if the label "
    'resource.kubernetes.io/admin-access has any value other than "true".',
    level=MUST,
    tier=E2E,
    source=DOCS,
    gates=("DRAAdminAccess",),
    about=CLUSTER,
    mutants=("admin-label-everywhere",),
)
@pytest.mark.parametrize("value", ["false", "True", ""], ids=["false", "capital", "empty"])
def test_other_values_of_the_label_are_not_accepted(scenario, value):
    scenario.label_namespace(LABEL, value)

    assert REFUSAL in scenario.should_be_refused("admin_access/claim.yaml")


@requirement(
    "ADMIN-004",
    "The API server must accept ResourceClaims and ResourceClaimTemplates that request admin access once their "
    'namespace has the label resource.kubernetes.io/admin-access: "true".',
    level=MUST,
    tier=E2E,
    source=DOCS,
    gates=("DRAAdminAccess",),
    covers=("AA1",),
    about=CLUSTER,
    mutants=("admin-access-dropped",),
)
@pytest.mark.parametrize(
    "manifest", ["admin_access/claim.yaml", "admin_access/template.yaml"], ids=["claim", "template"]
)
def test_claims_and_templates_are_accepted_with_the_label(scenario, manifest):
    assert REFUSAL in scenario.should_be_refused(manifest)

    scenario.label_namespace(LABEL, "true")
    scenario.apply(manifest)
