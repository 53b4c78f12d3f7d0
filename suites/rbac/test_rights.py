"""The driver's account may do what a driver does, and nothing else. Nothing is made: the API server is asked."""

from testbed.conformance import MUST, SHOULD, STATIC, Capability, requirement

DOCS = "kubernetes.io: Good practices for Dynamic Resource Allocation as a Cluster Admin, driver permissions"
GRANULAR = "kubernetes.io: Dynamic Resource Allocation, granular status authorization"


@requirement(
    "RBAC-001",
    "The driver may read a claim that the kubelet names, and publish slices.",
    level=MUST,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    given=("local",),
    source=DOCS,
    mutants=("may-not-read-claims",),
)
def test_the_driver_may_do_its_work(account):
    needed = ("get resourceclaims.resource.k8s.io", "create resourceslices.resource.k8s.io")

    assert not set(needed) - account.may(*needed)


@requirement(
    "RBAC-002",
    "The driver may not read Secrets.",
    level=SHOULD,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    source=DOCS,
    mutants=("may-read-secrets",),
)
def test_the_driver_may_not_read_secrets(account):
    assert not account.may("get secrets", "list secrets", "watch secrets")


@requirement(
    "RBAC-003",
    "The driver makes, changes and deletes no claims, templates or classes.",
    level=SHOULD,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    source=DOCS,
    mutants=("may-write-claims",),
)
def test_the_driver_may_not_write_claims(account):
    claims = account.may("create resourceclaims.resource.k8s.io", "delete resourceclaims.resource.k8s.io")
    templates = account.may(
        "create resourceclaimtemplates.resource.k8s.io", "update resourceclaimtemplates.resource.k8s.io"
    )
    classes = account.may("update deviceclasses.resource.k8s.io", "delete deviceclasses.resource.k8s.io")

    assert not claims | templates | classes


@requirement(
    "RBAC-004",
    "The driver may not do what leads to more: make pods or run programs in them, make tokens, change nodes or roles.",
    level=SHOULD,
    tier=STATIC,
    needs=(Capability.ACT_AS_DRIVER,),
    source=DOCS,
    mutants=("may-make-pods",),
)
def test_the_driver_may_not_become_more_than_it_is(account):
    pods = account.may("create pods", "create pods/exec", "update pods", "create daemonsets.apps")
    nodes = account.may("update nodes", "patch nodes", "create nodes/proxy", "create serviceaccounts/token")
    roles = account.may(
        "bind clusterroles.rbac.authorization.k8s.io", "escalate clusterroles.rbac.authorization.k8s.io"
    )

    assert not pods | nodes | roles


@requirement(
    "RBAC-005",
    "The driver may not allocate devices, nor say who uses a claim.",
    level=SHOULD,
    tier=STATIC,
    kubernetes="1.36",
    needs=(Capability.ACT_AS_DRIVER,),
    source=GRANULAR,
    covers=("DS2",),
    mutants=("may-allocate",),
)
def test_the_driver_may_not_allocate(account):
    binding = "resourceclaims/binding.resource.k8s.io"

    assert not account.may(f"update {binding}", f"patch {binding}")


@requirement(
    "RBAC-006",
    "The driver may write the status of no other driver's devices.",
    level=SHOULD,
    tier=STATIC,
    kubernetes="1.36",
    needs=(Capability.ACT_AS_DRIVER,),
    source=GRANULAR,
    covers=("DS2",),
    mutants=("status-of-all-drivers",),
)
def test_the_driver_may_not_write_the_status_of_others(account):
    status = "resourceclaims/driver.resource.k8s.io another-driver.example"
    near = account.may(f"associated-node:update {status}", f"associated-node:patch {status}")
    far = account.may(f"arbitrary-node:update {status}", f"arbitrary-node:patch {status}")

    assert not near | far
