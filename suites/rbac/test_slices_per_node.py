"""A driver pod may change ResourceSlices of its own node only. The tests use dry runs and create no objects."""

from testbed.conformance import MAY, SHOULD, STATIC, Capability, requirement

DOCS = "KEP-4381, section Security; k8s.io/dynamic-resource-allocation: kubeletplugin/doc.go"


@requirement(
    "RBAC-010",
    "A driver pod should be allowed to publish ResourceSlices for its own node, and not for another node.",
    level=SHOULD,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    given=("local",),
    source=DOCS,
    covers=("DS4",),
    mutants=("slices-of-all-nodes", "may-not-publish"),
)
def test_slices_of_another_node_are_refused(account):
    account.should_publish_its_own_slices()
    account.should_not_publish(node="another-node")


@requirement(
    "RBAC-011",
    "A driver pod on a node should not be allowed to publish ResourceSlices for all nodes.",
    level=SHOULD,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    given=("local",),
    source=DOCS,
    covers=("DS4",),
    mutants=("slices-of-all-nodes", "may-not-publish"),
)
def test_slices_of_the_whole_cluster_are_refused(account):
    account.should_publish_its_own_slices()
    account.should_not_publish()


@requirement(
    "RBAC-012",
    "A driver pod may be denied the right to publish ResourceSlices under the name of another driver.",
    level=MAY,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    given=("local",),
    source=DOCS,
    mutants=("slices-of-all-nodes", "may-not-publish"),
)
def test_slices_of_another_driver_are_refused(account):
    account.should_publish_its_own_slices()
    account.should_not_publish(node=account.node, driver="another-driver.example")


@requirement(
    "RBAC-013",
    "A driver pod should not be allowed to change or delete the ResourceSlices that the driver publishes for other nodes.",
    level=SHOULD,
    tier=STATIC,
    nodes=2,
    needs=(Capability.ACT_AS_DRIVER,),
    given=("local",),
    source=DOCS,
    covers=("DS4",),
    mutants=("slices-of-all-nodes", "deletes-slices-of-all-nodes", "may-not-publish"),
)
def test_slices_of_other_nodes_may_be_neither_changed_nor_deleted(account):
    account.should_publish_its_own_slices()
    account.should_not_write_slices_of_others()


@requirement(
    "RBAC-017",
    "A ValidatingAdmissionPolicy for ResourceSlices that a driver installs should match a version of resource.k8s.io that is served, "
    "and the service account of the driver's pods.",
    level=SHOULD,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    source="Kubernetes documentation: Validating Admission Policy, section Match resources: matchConstraints and matchConditions",
    mutants=("policy-for-an-old-version", "policy-for-another-account"),
)
def test_the_policies_of_the_driver_match_its_requests(account):
    assert account.policy_problems == ()
