"""Permissions of the driver's service account. The tests ask the API server and create no objects."""

from testbed.conformance import MUST, SHOULD, STATIC, Capability, requirement

DOCS = (
    "Kubernetes documentation: Good practices for Dynamic Resource Allocation as a Cluster Admin, "
    "section Separate permissions to DRA related APIs; KEP-4381, section Security"
)
GRANULAR = "Kubernetes documentation: Hardening Guide - Dynamic Resource Allocation, section Harden DRA status update permissions"
ROLES = ("roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io")
READING_SECRETS = ("get secrets", "list secrets", "watch secrets")
CLAIMS = ("resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io")
CHANGING_CLASSES = (
    *("update deviceclasses.resource.k8s.io", "patch deviceclasses.resource.k8s.io"),
    *("delete deviceclasses.resource.k8s.io", "deletecollection deviceclasses.resource.k8s.io"),
)
CHANGING_CLAIMS = (
    *("update resourceclaims.resource.k8s.io", "patch resourceclaims.resource.k8s.io"),
    *("delete resourceclaims.resource.k8s.io", "deletecollection resourceclaims.resource.k8s.io"),
)
# Creating pods in its own namespace is allowed: some drivers run helper daemons there.
MAKING_PODS = (
    *("create pods", "update pods", "patch pods"),
    *("create daemonsets.apps", "create deployments.apps", "create statefulsets.apps", "create jobs.batch"),
)
ENTERING_PODS = (
    "create pods/exec",
    "get pods/exec",
    "update pods/ephemeralcontainers",
    "patch pods/ephemeralcontainers",
)
ACTING_AS_OTHERS = ("create serviceaccounts/token", "impersonate serviceaccounts")
CHANGING_CLUSTER_ROLES = (
    *("bind clusterroles.rbac.authorization.k8s.io", "escalate clusterroles.rbac.authorization.k8s.io"),
    *("create clusterroles.rbac.authorization.k8s.io", "create clusterrolebindings.rbac.authorization.k8s.io"),
    *("update clusterroles.rbac.authorization.k8s.io", "update clusterrolebindings.rbac.authorization.k8s.io"),
    *("patch clusterroles.rbac.authorization.k8s.io", "patch clusterrolebindings.rbac.authorization.k8s.io"),
)


@requirement(
    "RBAC-001",
    "The driver's service account must be allowed to get ResourceClaims and to create ResourceSlices.",
    level=MUST,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    given=("local",),
    source=DOCS,
    mutants=("may-not-read-claims", "may-not-publish"),
)
def test_the_driver_has_the_permissions_that_it_needs(account):
    account.should_be_allowed("get resourceclaims.resource.k8s.io", "create resourceslices.resource.k8s.io")


@requirement(
    "RBAC-002",
    "The driver's service account must not be allowed to read the Secrets of all namespaces or of kube-system.",
    level=MUST,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    source=DOCS,
    mutants=("may-read-secrets",),
)
def test_the_driver_may_not_read_secrets_of_others(account):
    account.should_be_refused(elsewhere=READING_SECRETS)


@requirement(
    "RBAC-003",
    "The driver's service account must not be allowed to change or delete the ResourceClaims of all "
    "namespaces, or to change or delete DeviceClasses.",
    level=MUST,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    source=DOCS,
    mutants=("may-write-claims", "may-change-claims"),
)
def test_the_driver_may_not_change_claims_of_others(account):
    account.should_be_refused(*CHANGING_CLASSES, *CHANGING_CLAIMS)


@requirement(
    "RBAC-004",
    "The driver's service account must not be allowed to create pods in all namespaces, run programs in "
    "pods, create tokens, impersonate others, or change roles.",
    level=MUST,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    source=DOCS,
    mutants=("may-make-pods", "may-act-as-others", "may-edit-its-namespace"),
)
def test_the_driver_may_not_escalate_its_privileges(account):
    account.should_be_refused(
        *MAKING_PODS,
        *CHANGING_CLUSTER_ROLES,
        *("impersonate users", "impersonate groups", "create nodes/proxy"),
        anywhere=(*ENTERING_PODS, *ACTING_AS_OTHERS),
        writing=ROLES,
    )


@requirement(
    "RBAC-005",
    "The driver's service account must not be allowed to change the allocation or the reservations of ResourceClaims.",
    level=MUST,
    tier=STATIC,
    kubernetes="1.36",
    needs=(Capability.ACT_AS_DRIVER,),
    source=GRANULAR,
    covers=("DS2",),
    mutants=("may-allocate",),
)
def test_the_driver_may_not_allocate(account):
    binding = "resourceclaims/binding.resource.k8s.io"

    account.should_be_refused(f"update {binding}", f"patch {binding}")


@requirement(
    "RBAC-006",
    "The driver's service account must not be allowed to write the status of another driver's devices.",
    level=MUST,
    tier=STATIC,
    kubernetes="1.36",
    needs=(Capability.ACT_AS_DRIVER,),
    source=GRANULAR,
    covers=("DS2",),
    mutants=("status-of-all-drivers",),
)
def test_the_driver_may_not_write_the_status_of_others(account):
    status = "resourceclaims/driver.resource.k8s.io another-driver.example"
    account.should_be_refused(
        anywhere=(
            *(f"associated-node:update {status}", f"associated-node:patch {status}"),
            *(f"arbitrary-node:update {status}", f"arbitrary-node:patch {status}"),
        )
    )


@requirement(
    "RBAC-007",
    "The driver's service account should not be allowed to write the status of devices in claims that are allocated on other nodes.",
    level=SHOULD,
    tier=STATIC,
    kubernetes="1.36",
    needs=(Capability.ACT_AS_DRIVER,),
    given=("local",),
    source=GRANULAR,
    covers=("DS2",),
    mutants=("status-on-all-nodes",),
)
def test_the_driver_may_not_write_the_status_of_other_nodes(account, driver):
    status = f"resourceclaims/driver.resource.k8s.io {driver.name}"

    account.should_be_refused(anywhere=(f"arbitrary-node:update {status}", f"arbitrary-node:patch {status}"))


@requirement(
    "RBAC-014",
    "The driver's service account should not be allowed to read the Secrets of its own namespace.",
    level=SHOULD,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    source=DOCS,
    mutants=("may-read-secrets", "may-edit-its-namespace"),
)
def test_the_driver_may_not_read_secrets(account):
    account.should_be_refused(anywhere=READING_SECRETS)


@requirement(
    "RBAC-015",
    "The driver's service account should not be allowed to create, change or delete ResourceClaims or "
    "ResourceClaimTemplates in any namespace.",
    level=SHOULD,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    source=DOCS,
    mutants=("may-write-claims", "may-change-claims", "may-edit-its-namespace"),
)
def test_the_driver_may_not_write_claims(account):
    account.should_be_refused(writing=CLAIMS)


@requirement(
    "RBAC-016",
    "The driver's service account should not be allowed to change or delete Nodes.",
    level=SHOULD,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    source=DOCS,
    mutants=("may-change-nodes",),
)
def test_the_driver_may_not_change_nodes(account):
    account.should_be_refused("update nodes", "patch nodes", "delete nodes")
