"""A pod waits for what it needs, and runs as soon as that is there."""

from testbed.conformance import CLUSTER, E2E, MUST, requirement

DOCS = "kubernetes.io: Dynamic Resource Allocation"
CLASS = "kubernetes.io: Dynamic Resource Allocation, DeviceClass"


@requirement(
    "CLAIM-020",
    "A pod whose claim does not exist waits, and runs with the claim's device as soon as somebody makes it.",
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
    "A pod whose template does not exist is told so, and runs as soon as somebody makes it.",
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
    pod = scenario.pod("pod").should_be_told(
        "FailedResourceClaimCreation", 'resourceclaimtemplate.resource.k8s.io "late" not found'
    )

    scenario.apply("claims/late-template.yaml")
    pod.should_run()

    assert pod.seen_devices == pod.devices


@requirement(
    "CLAIM-022",
    "A pod whose claim names a DeviceClass that does not exist is unschedulable, and runs as soon as the class is there.",
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
    "A pod whose DeviceClass selects no device is unschedulable, and runs as soon as the class is changed to select some.",
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
    pod = scenario.pod("pod").should_be_unschedulable(because="cannot allocate all claims")

    scenario.apply("claims/own-class.yaml")
    pod.should_run()

    assert pod.seen_devices == scenario.claim("my-device").devices


@requirement(
    "CLAIM-024",
    "When all devices are taken, one more pod stays pending; it runs with a device that another pod gives back.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    given=("local", "few", "unshared"),
    covers=("L2", "S2"),
    mutants=("never-give-back", "unprepare-fails"),
)
def test_one_pod_more_than_there_are_devices(scenario, nodes):
    scenario.apply("basic/everything.yaml")
    hoarders = scenario.daemonset("hoarder").pods_on(nodes).should_run()
    scenario.apply("claims/one-more.yaml")
    one_more = scenario.pod("one-more").should_be_unschedulable(because="cannot allocate all claims")

    scenario.delete("daemonset", "hoarder")
    hoarders.should_be_gone()
    one_more.should_run()

    assert one_more.seen_devices == one_more.devices


@requirement(
    "CLAIM-025",
    "When the last pod that used a claim has ended, the claim is deallocated and stays, for the next pod.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    covers=("L13",),
    mutants=("unprepare-fails",),
)
def test_a_claim_is_deallocated_and_used_again(scenario, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    scenario.pod("pod").should_run().delete().should_be_gone()
    claim = scenario.claim("my-device").should_be_deallocated()

    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()

    assert pod.seen_devices == claim.devices


@requirement(
    "CLAIM-026",
    "A claim that is deleted while a pod uses it stays until that pod has ended; the pod keeps its device.",
    level=MUST,
    tier=E2E,
    source="API reference: ResourceClaim v1 resource.k8s.io, finalizer resource.kubernetes.io/delete-protection",
    mutants=("unprepare-fails", "cdi-file-is-lost"),
)
def test_a_claim_that_is_used_is_protected(scenario):
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
    "A pod does not get a claim that is about to be deleted.",
    level=MUST,
    tier=E2E,
    source="KEP-4381, ResourceClaim deletion",
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
)
def test_a_pod_does_not_get_a_claim_that_is_about_to_be_deleted(scenario):
    scenario.apply("basic/claim-by-name.yaml")
    scenario.pod("pod").should_run()
    claim = scenario.claim("my-device")
    claim.delete()

    scenario.apply("basic/second-pod.yaml")
    scenario.pod("second").should_stay_unscheduled()

    assert claim.pods == {"pod"}


@requirement(
    "CLAIM-028",
    "A claim that is made anew under an old name is another claim: its pod sees the devices of the new one.",
    level=MUST,
    tier=E2E,
    source="KEP-4381, NodePrepareResources: a claim is known by its UID",
    mutants=("know-claims-by-name",),
)
def test_a_claim_is_made_anew_under_an_old_name(scenario, node):
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
