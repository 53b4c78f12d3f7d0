"""Pods with spec.nodeName, for which no scheduler allocates claims."""

from testbed.conformance import CLUSTER, E2E, MUST, NONE, messages, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section Pre-scheduled Pods"
REASON = messages.FAILED_PREPARE
UNKNOWN = 'resourceclaims.resource.k8s.io "my-device" not found'
NOT_ALLOWED = f"{messages.CLAIM_NOT_ALLOWED} my-device"
OTHER_NOT_ALLOWED = f"{messages.CLAIM_NOT_ALLOWED} other"
GENERATED_NOT_ALLOWED = f"{messages.CLAIM_NOT_ALLOWED} pod-device-"


@requirement(
    "PRESCHED-001",
    "The kubelet must not run a pod with spec.nodeName whose ResourceClaim does not exist, and must report why in an event.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    covers=("B1",),
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
)
def test_the_claim_does_not_exist(scenario, node):
    scenario.apply("prescheduled/pod.yaml", node=node)
    pod = scenario.pod("pod").should_have_event(REASON, UNKNOWN)

    pod.should_have_event_again(REASON, UNKNOWN).should_stay_pending()


@requirement(
    "PRESCHED-002",
    "The kubelet must not run a pod with spec.nodeName whose ResourceClaim is not allocated, and must report why in an event.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    covers=("B1",),
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
)
def test_the_claim_is_not_allocated(scenario, node):
    scenario.apply("prescheduled/claim.yaml")
    scenario.apply("prescheduled/pod.yaml", node=node)
    pod = scenario.pod("pod").should_have_event(REASON, NOT_ALLOWED).should_have_event_again(REASON, NOT_ALLOWED)

    assert pod.should_stay_pending().devices == NONE


@requirement(
    "PRESCHED-003",
    "The kubelet must not run a pod with spec.nodeName whose generated ResourceClaim is not allocated, and must report why in an event.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    covers=("B1",),
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
)
def test_the_claim_comes_from_a_template(scenario, node):
    scenario.apply("prescheduled/pod-with-template.yaml", node=node)
    pod = scenario.pod("pod").should_have_claims().trigger_sync()
    refusal = GENERATED_NOT_ALLOWED
    pod.should_have_event(REASON, refusal).should_have_event_again(REASON, refusal)

    assert pod.claims["device"].owner == ("Pod", "pod")
    assert pod.should_stay_pending().devices == NONE


@requirement(
    "PRESCHED-004",
    "A pod with spec.nodeName must run once its claim is allocated for another pod on that node, and both must see the same device.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("shared-claims",),
    covers=("G10",),
    mutants=("no-env",),
)
def test_the_pod_runs_as_soon_as_its_claim_is_allocated(scenario, node):
    scenario.apply("prescheduled/claim.yaml")
    scenario.apply("prescheduled/pod.yaml", node=node)
    pod = scenario.pod("pod").should_have_event(REASON, NOT_ALLOWED)

    scenario.apply("prescheduled/allocated-claim.yaml", node=node)
    scenario.claim("my-device").should_be_reserved_for("pod", "scheduled")
    pod.trigger_sync().should_run()

    assert pod.seen_devices == scenario.pod("scheduled").should_run().seen_devices == pod.devices


@requirement(
    "PRESCHED-005",
    "An allocated claim must be reserved for a pod with spec.nodeName that refers to it, and the pod must run and see the device.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("shared-claims",),
    covers=("G10",),
    mutants=("no-env",),
)
def test_a_claim_that_is_already_allocated_is_reserved(scenario, node):
    scenario.apply("prescheduled/allocated-claim.yaml", node=node)
    scenario.pod("scheduled").should_run()

    scenario.apply("prescheduled/pod.yaml", node=node)
    claim = scenario.claim("my-device").should_be_reserved_for("pod", "scheduled")
    pod = scenario.pod("pod").trigger_sync().should_run()

    assert pod.seen_devices == claim.devices


@requirement(
    "PRESCHED-006",
    "A claim must stay allocated until a pod with spec.nodeName that shares it has ended too, and then be deallocated.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("shared-claims",),
    covers=("G10",),
    mutants=("unprepare-fails",),
)
def test_the_claim_is_released_with_the_pod(scenario, node):
    scenario.apply("prescheduled/allocated-claim.yaml", node=node)
    scheduled, claim = scenario.pod("scheduled").should_run(), scenario.claim("my-device")
    scenario.apply("prescheduled/pod.yaml", node=node)
    claim.should_be_reserved_for("pod", "scheduled")
    pod = scenario.pod("pod").trigger_sync().should_run()

    scheduled.delete().should_be_gone()
    assert claim.should_be_reserved_for("pod").devices

    pod.delete().should_be_gone()
    claim.should_be_deallocated()


@requirement(
    "PRESCHED-007",
    "A pod with a node selector instead of spec.nodeName must run on the selected node and see the device of its claim.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    mutants=("no-env", "wrong-cdi-names"),
)
def test_a_node_selector_works(scenario, node):
    scenario.apply("prescheduled/node-selector.yaml", hostname=node.label("kubernetes.io/hostname"))
    pod = scenario.pod("pod").should_run()

    assert pod.node == node
    assert pod.seen_devices == pod.devices


@requirement(
    "PRESCHED-008",
    "A pod with spec.nodeName that waits for its claim must not keep other pods from running on the node, and deleting it must work.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
)
def test_a_waiting_pod_does_not_block_other_pods(scenario, node):
    scenario.apply("prescheduled/claim.yaml")
    scenario.apply("prescheduled/pod.yaml", node=node)
    pod = scenario.pod("pod").should_have_event(REASON, NOT_ALLOWED)

    scenario.apply("prescheduled/pod-without-claims.yaml", node=node)
    scenario.pod("plain").should_run()

    pod.delete().should_be_gone()


@requirement(
    "PRESCHED-009",
    "The driver must prepare a device of its own node, and must refuse each attempt to prepare the device of the same name "
    "in another node's pool. The pod with the other node's device must not run.",
    level=MUST,
    tier=E2E,
    nodes=2,
    exclusive=True,  # a driver that ignores the pool could refuse a device that another test uses, and pass
    source="KEP-4381, section NodePrepareResource; kubelet: pkg/kubelet/cm/dra/manager.go, which does not check allocation.nodeSelector",
    given=("local", "alone"),
    covers=("G26",),
    mutants=("know-devices-by-name", "refuses-once"),
    counts=(1,),
)
def test_the_claim_is_allocated_on_another_node(scenario, driver, nodes):
    here, other = driver.namesakes_on(max(nodes), min(nodes))
    scenario.apply("basic/pod-and-claim.yaml", claim="right", node=max(nodes))
    scenario.apply_status("basic/allocation.yaml", claim="right", node=max(nodes), pool=here.pool, name=here.name)
    scenario.claim("right").should_be_reserved_for("right")
    right = scenario.pod("right").trigger_sync().should_run()
    assert right.seen_devices == {here}
    right.delete().should_be_gone()

    scenario.apply("basic/pod-and-claim.yaml", claim="wrong", node=max(nodes))
    scenario.apply_status("basic/allocation.yaml", claim="wrong", node=min(nodes), pool=other.pool, name=other.name)
    scenario.claim("wrong").should_be_reserved_for("wrong")
    wrong = scenario.pod("wrong").trigger_sync().should_fail_to_prepare("wrong")
    wrong.should_fail_to_prepare_again("wrong").should_stay_pending()


@requirement(
    "PRESCHED-010",
    "The kubelet must not run a pod with spec.nodeName until all its claims are allocated, and must not "
    "unprepare a claim that another pod uses.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
    features=("several-claims",),
)
def test_one_of_two_claims_is_not_ready(scenario, node):
    scenario.apply("prescheduled/allocated-claim.yaml", node=node)
    scheduled = scenario.pod("scheduled").should_run()
    scenario.apply("prescheduled/two-claims.yaml", node=node)
    scenario.claim("my-device").should_be_reserved_for("pod", "scheduled")
    refusal = OTHER_NOT_ALLOWED
    pod = scenario.pod("pod").trigger_sync().should_have_event(REASON, refusal)
    pod.should_have_event_again(REASON, refusal).should_stay_pending()

    scheduled.container("workload").restart()
    scheduled.should_stay_running()


@requirement(
    "PRESCHED-011",
    "When a pod with spec.nodeName that never ran is deleted, its claims must stay prepared for other pods that use them.",
    level=MUST,
    tier=E2E,
    kubernetes="1.37",
    source="github.com/kubernetes/kubernetes, pull request 140212: before 1.37 the kubelet unprepares the claim",
    covers=("#140212",),
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
    features=("several-claims",),
)
def test_deleting_a_pod_that_never_ran_does_not_affect_others(scenario, node):
    scenario.apply("prescheduled/allocated-claim.yaml", node=node)
    scheduled = scenario.pod("scheduled").should_run()
    scenario.apply("prescheduled/two-claims.yaml", node=node)
    scenario.claim("my-device").should_be_reserved_for("pod", "scheduled")
    pod = scenario.pod("pod").trigger_sync().should_have_event(REASON, OTHER_NOT_ALLOWED)

    pod.delete().should_be_gone()

    scheduled.container("workload").restart()
    scheduled.should_stay_running()


@requirement(
    "PRESCHED-012",
    "A pod with spec.nodeName must run and see its device once its missing claim is created and allocated.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("shared-claims",),
    mutants=("no-env",),
)
def test_the_pod_runs_as_soon_as_its_claim_is_created_and_allocated(scenario, node):
    scenario.apply("prescheduled/pod.yaml", node=node)
    pod = scenario.pod("pod").should_have_event(REASON, UNKNOWN)

    scenario.apply("prescheduled/allocated-claim.yaml", node=node)
    scenario.claim("my-device").should_be_reserved_for("pod", "scheduled")
    pod.trigger_sync().should_run()

    assert pod.seen_devices == pod.devices


@requirement(
    "PRESCHED-013",
    "A claim that is being deleted must not be reserved for a pod with spec.nodeName. "
    "That pod must not run, and the pod that uses the claim must keep it.",
    level=MUST,
    tier=E2E,
    source="API reference: ResourceClaim v1 resource.k8s.io, ResourceClaimStatus.reservedFor",
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
)
def test_the_claim_is_being_deleted(scenario, node):
    scenario.apply("prescheduled/allocated-claim.yaml", node=node)
    scheduled, claim = scenario.pod("scheduled").should_run(), scenario.claim("my-device")
    claim.delete()

    scenario.apply("prescheduled/pod.yaml", node=node)
    pod = scenario.pod("pod").should_have_event(REASON, NOT_ALLOWED).should_have_event_again(REASON, NOT_ALLOWED)

    pod.should_stay_pending()
    scheduled.should_stay_running()
    assert claim.pods == {"scheduled"}
