"""Containers and pods that use one ResourceClaim: together, one after another, and when one of them ends."""

from testbed.conformance import CLUSTER, E2E, MUST, messages, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section ResourceClaims and ResourceClaimTemplates"
API = "API reference: ResourceClaim v1 resource.k8s.io, ResourceClaimStatus"


@requirement(
    "SHARE-002",
    "All containers of a pod that refer to the same claim, also init containers, must see the same device.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    covers=("L8",),
    mutants=("no-env",),
    features=("shared-by-containers",),
)
def test_containers_of_a_pod_share_one_claim(scenario):
    scenario.apply("sharing/two-containers.yaml")
    pod = scenario.pod("pod").should_run()
    before, one, other = pod.containers("before", "one", "other")

    assert before.printed_devices == one.seen_devices == other.seen_devices == pod.devices


@requirement(
    "SHARE-003",
    "Five pods that start with one claim at the same time must all run on one node, and each of their containers must see its device.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("shared-claims", "shared-by-containers"),
    given=("local",),
    covers=("L3", "L11"),
    mutants=(
        "no-env",
        "wrong-cdi-names",
    ),
)
def test_many_pods_start_with_one_claim_at_once(scenario):
    scenario.apply("sharing/five-pods.yaml")
    pods = scenario.pods_of("crowd", 5).should_run()

    assert pods.seen_by("one") == pods.seen_by("other") == pods.devices
    assert pods.claims == {"shared"}
    assert len(pods.nodes) == 1


@requirement(
    "SHARE-004",
    "Two pods that share one claim and have another claim each must see the devices of their own claims only.",
    level=MUST,
    tier=E2E,
    devices=3,
    source=DOCS,
    features=("shared-claims", "several-claims"),
    given=("unshared",),
    mutants=(
        "share-one-device",
        "no-env",
        "answer-for-the-wrong-claim",
    ),
)
def test_pods_share_one_of_their_claims(scenario):
    scenario.apply("sharing/overlapping-claims.yaml")
    first, second = scenario.pods("first", "second").should_run()

    assert first.seen_devices == first.devices
    assert second.seen_devices == second.devices
    assert first.devices & second.devices == scenario.claim("middle").devices


@requirement(
    "SHARE-005",
    "A claim must be reserved for exactly the pods that use it, as they come and go.",
    level=MUST,
    tier=E2E,
    source=API,
    features=("shared-claims",),
    about=CLUSTER,
    mutants=("reservations-stay",),
)
def test_a_claim_is_reserved_for_the_pods_that_use_it(scenario):
    scenario.apply("sharing/first-pod.yaml")
    first, claim = scenario.pod("first").should_be_scheduled(), scenario.claim("shared")
    assert claim.pods == {"first"}

    scenario.apply("sharing/second-pod.yaml")
    scenario.pod("second").should_be_scheduled()
    assert claim.pods == {"first", "second"}

    first.delete().should_be_gone()
    claim.should_be_reserved_for("second")


@requirement(
    "SHARE-006",
    "When one of the pods that share a claim ends, the other must keep running and see the device after a container restart.",
    level=MUST,
    tier=E2E,
    source="KEP-4381, section Managing resources: a claim is unprepared for the last pod on the node that uses it",
    features=("shared-claims",),
    mutants=("cdi-file-is-lost",),
)
def test_deleting_one_pod_does_not_affect_the_other(scenario):
    scenario.apply("sharing/two-pods-one-claim.yaml")
    first, second = scenario.pods("first", "second").should_run()

    first.delete().should_be_gone()

    second.should_stay_running()
    assert second.container("cat").restart().seen_devices == scenario.claim("shared").devices


@requirement(
    "SHARE-007",
    "A claim must stay allocated until the last pod that uses it has ended, and then be deallocated.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("shared-claims",),
    mutants=("unprepare-fails",),
)
def test_the_last_pod_releases_the_claim(scenario):
    scenario.apply("sharing/two-pods-one-claim.yaml")
    first, second = scenario.pods("first", "second").should_run()
    claim = scenario.claim("shared")
    devices = claim.devices

    first.delete().should_be_gone()
    assert claim.should_be_reserved_for("second").devices == devices

    second.delete().should_be_gone()
    claim.should_be_deallocated()


@requirement(
    "SHARE-008",
    "Pods must be able to use a claim one after another: the next pod must see its device, and "
    "the claim must be reserved for that pod only.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    covers=("L2",),
    mutants=("unprepare-fails",),
)
def test_pods_use_a_claim_one_after_another(scenario):
    scenario.apply("sharing/first-pod.yaml")
    scenario.pod("first").should_run().delete().should_be_gone()

    scenario.apply("sharing/second-pod.yaml")
    second = scenario.pod("second").should_run()

    assert second.seen_devices == scenario.claim("shared").should_be_reserved_for("second").devices


@requirement(
    "SHARE-009",
    "A container restart must not disturb another pod that uses the same claim, and both pods must still see the device.",
    level=MUST,
    tier=E2E,
    source="Kubernetes documentation: Pod Lifecycle, section Container restart policy",
    features=("shared-claims",),
    mutants=("no-env",),
)
def test_restarting_a_container_does_not_disturb_others(scenario):
    scenario.apply("sharing/two-pods-one-claim.yaml")
    pods = scenario.pods("first", "second").should_run()
    first, second = pods.containers("cat")

    first.restart()

    assert first.seen_devices == second.seen_devices == scenario.claim("shared").devices
    assert second.restarts == 0


@requirement(
    "SHARE-010",
    "The scheduler must place a pod whose claim is already allocated only on a node where the allocated device is.",
    level=MUST,
    tier=E2E,
    nodes=2,
    source="API reference: ResourceClaim v1 resource.k8s.io, AllocationResult.nodeSelector",
    given=("local",),
    about=CLUSTER,
    mutants=("allocations-lose-their-node",),
)
def test_a_shared_claim_is_available_only_on_the_node_of_its_device(scenario):
    scenario.apply("sharing/first-pod.yaml")
    first = scenario.pod("first").should_be_scheduled()

    scenario.apply("sharing/pod-for-another-node.yaml", node=first.node)
    scenario.pod("second").should_be_unschedulable(because=messages.CLAIM_ON_OTHER_NODE)

    assert scenario.claim("shared").pods == {"first"}


@requirement(
    "SHARE-011",
    "The API server must accept 256 consumers in the reservedFor list of a ResourceClaim, and reject one more.",
    level=MUST,
    tier=E2E,
    source="API reference: ResourceClaim v1 resource.k8s.io, ResourceClaimStatus.reservedFor",
    covers=("G10",),
    about=CLUSTER,
    mutants=("consumers-dropped",),
)
def test_a_claim_can_have_256_consumers(scenario):
    scenario.apply("sharing/first-pod.yaml")
    scenario.pod("first").should_be_scheduled()

    refusal = scenario.status_should_be_refused("sharing/consumers.yaml", consumers=256)
    assert messages.MORE_THAN_256_ITEMS in refusal

    scenario.apply_status("sharing/consumers.yaml", consumers=255, dry_run=True)
