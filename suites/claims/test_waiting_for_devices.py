"""Pods wait for a missing claim, template, class or device, and run once it exists."""

from testbed.conformance import CLUSTER, E2E, MUST, messages, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section How resource allocation with DRA works"
CLASS = "Kubernetes documentation: Dynamic Resource Allocation, section DeviceClass"


@requirement(
    "CLAIM-020",
    "A pod whose ResourceClaim does not exist must wait. Once the claim is created, the pod must run and see the claim's device.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    mutants=(
        "no-env",
        "pods-lose-their-claims",
    ),
)
def test_a_pod_waits_for_its_claim(scenario):
    scenario.apply("claims/pod-before-its-claim.yaml")
    pod = scenario.pod("pod").should_stay_unscheduled()

    scenario.apply("claims/late-claim.yaml")
    pod.should_run()

    assert pod.seen_devices == scenario.claim("late").devices


@requirement(
    "CLAIM-021",
    "A pod whose ResourceClaimTemplate does not exist must get a FailedResourceClaimCreation event. "
    "Once the template is created, the pod must run and see its device.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    mutants=(
        "no-env",
        "pods-lose-their-claims",
    ),
)
def test_a_pod_waits_for_its_template(scenario):
    scenario.apply("claims/pod-before-its-template.yaml")
    pod = scenario.pod("pod").should_have_event(
        messages.FAILED_CLAIM_CREATION, 'resourceclaimtemplate.resource.k8s.io "late" not found'
    )

    scenario.apply("claims/late-template.yaml")
    pod.should_run()

    assert pod.seen_devices == pod.devices


@requirement(
    "CLAIM-022",
    "A pod whose claim names a missing DeviceClass must be unschedulable. Once the class is created, the pod must run and see its device.",
    level=MUST,
    tier=E2E,
    source=CLASS,
    covers=("L4",),
    mutants=(
        "no-env",
        "pods-lose-their-claims",
    ),
)
def test_a_pod_waits_for_its_class(scenario):
    scenario.apply("claims/pod-of-own-class.yaml")
    pod = scenario.pod("pod").should_be_unschedulable(because=f"device class {scenario.namespace} does not exist")

    scenario.apply("claims/own-class.yaml")
    pod.should_run()

    assert pod.seen_devices == scenario.claim("my-device").devices


@requirement(
    "CLAIM-023",
    "A pod whose DeviceClass selects no device must be unschedulable. Once the class selects devices, the pod must run and see its device.",
    level=MUST,
    tier=E2E,
    source=CLASS,
    covers=("L5",),
    mutants=(
        "no-env",
        "pods-lose-their-claims",
    ),
)
def test_a_pod_waits_for_a_class_with_devices(scenario):
    scenario.apply("claims/own-class-of-nothing.yaml")
    scenario.apply("claims/pod-of-own-class.yaml")
    pod = scenario.pod("pod").should_be_unschedulable(because=messages.NO_DEVICE_FITS)

    scenario.apply("claims/own-class.yaml")
    pod.should_run()

    assert pod.seen_devices == scenario.claim("my-device").devices


@requirement(
    "CLAIM-024",
    "When all devices are allocated, another pod must stay pending. "
    "Once devices are released, the waiting pod must run and see its device.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    given=("local", "few", "unshared"),
    covers=("L2", "S2"),
    mutants=("never-give-back", "unprepare-fails"),
    counts=("all",),
)
def test_a_pod_waits_when_all_devices_are_allocated(scenario, nodes):
    scenario.apply("basic/everything.yaml")
    users = scenario.daemonset("hoarder").pods_on(nodes).should_run()
    scenario.apply("claims/one-more.yaml")
    one_more = scenario.pod("one-more").should_be_unschedulable(because=messages.NO_DEVICE_FITS)

    scenario.delete("daemonset", "hoarder")
    users.should_be_gone()
    one_more.should_run()

    assert one_more.seen_devices == one_more.devices


@requirement(
    "CLAIM-025",
    "When the last pod that uses a claim has ended, the claim must be deallocated and kept, so "
    "that the next pod can use it and see its device.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    covers=("L13",),
    mutants=("unprepare-fails",),
)
def test_a_deallocated_claim_is_used_again(scenario, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    scenario.pod("pod").should_run().delete().should_be_gone()
    claim = scenario.claim("my-device").should_be_deallocated()

    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()

    assert pod.seen_devices == claim.devices


@requirement(
    "CLAIM-026",
    "A ResourceClaim that is deleted while a pod uses it must remain until that pod has ended, and a "
    "restarted container of the pod must still see the device.",
    level=MUST,
    tier=E2E,
    source="k8s.io/api: resource/v1/types.go, Finalizer (resource.kubernetes.io/delete-protection)",
    mutants=("unprepare-fails", "cdi-file-is-lost"),
)
def test_a_claim_in_use_is_protected(scenario):
    scenario.apply("basic/claim-by-name.yaml")
    pod, claim = scenario.pod("pod").should_run(), scenario.claim("my-device")

    claim.delete()
    claim.should_stay()
    assert claim.is_protected
    assert pod.container("workload").restart().seen_devices == claim.devices

    pod.delete().should_be_gone()
    claim.should_be_gone()


@requirement(
    "CLAIM-027",
    "The scheduler must not reserve a ResourceClaim for another pod while the claim is being deleted.",
    level=MUST,
    tier=E2E,
    source="kube-scheduler: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go",
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
)
def test_a_pod_does_not_get_a_claim_that_is_being_deleted(scenario):
    scenario.apply("basic/claim-by-name.yaml")
    scenario.pod("pod").should_be_scheduled()
    claim = scenario.claim("my-device")
    claim.delete()

    scenario.apply("basic/second-pod.yaml")
    scenario.pod("second").should_stay_unscheduled()

    assert claim.pods == {"pod"}


@requirement(
    "CLAIM-028",
    "The driver must treat a claim that is created again under an old name as a new claim, so "
    "that its pod sees the device of the new claim.",
    level=MUST,
    tier=E2E,
    source="KEP-4381, section NodePrepareResource: namespace, UID and name identify the claim",
    mutants=("know-claims-by-name",),
)
def test_a_claim_is_recreated_under_the_same_name(scenario, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod, claim = scenario.pod("pod").should_run(), scenario.claim("my-device")
    old = claim.uid
    pod.delete().should_be_gone()
    claim.delete()
    claim.should_be_gone()

    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod.should_run()

    assert claim.uid != old
    assert pod.seen_devices == claim.devices
