"""Who may ask for admin access: users of namespaces that an administrator has labelled for it, and nobody else."""

import pytest

from testbed.conformance import CLUSTER, E2E, MUST, requirement

DOCS = "kubernetes.io: Dynamic Resource Allocation, Admin access"
LABEL = "resource.kubernetes.io/admin-access"
REFUSAL = f"admin access to devices requires the `{LABEL}: true` label on the containing namespace"


@requirement(
    "ADMIN-001",
    "A ResourceClaim that asks for admin access is refused in a namespace without the label for it.",
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
    "A ResourceClaimTemplate that asks for admin access is refused in a namespace without the label for it.",
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
    "The label counts only if its value is exactly true.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    gates=("DRAAdminAccess",),
    about=CLUSTER,
    mutants=("admin-label-everywhere",),
)
@pytest.mark.parametrize("value", ["false", "True", ""], ids=["false", "capital", "empty"])
def test_another_value_of_the_label_does_not_count(scenario, value):
    scenario.label_namespace(LABEL, value)

    assert REFUSAL in scenario.should_be_refused("admin_access/claim.yaml")


@requirement(
    "ADMIN-004",
    "Claims and templates that ask for admin access are accepted as soon as the namespace has the label.",
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
def test_they_are_accepted_with_the_label(scenario, manifest):
    assert REFUSAL in scenario.should_be_refused(manifest)

    scenario.label_namespace(LABEL, "true")
    scenario.apply(manifest)
