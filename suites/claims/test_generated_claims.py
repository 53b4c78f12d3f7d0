"""ResourceClaims that are generated from a ResourceClaimTemplate: their names, owners and deletion."""

import pytest

from testbed.conformance import CLUSTER, E2E, MUST, NONE, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section ResourceClaims and ResourceClaimTemplates"
API = "API reference: ResourceClaimTemplate v1 resource.k8s.io"


@requirement(
    "CLAIM-002",
    "The name of a generated ResourceClaim must start with the names of its pod and claim entry, and "
    "it must have the template's labels and annotations.",
    level=MUST,
    tier=E2E,
    source=API,
    about=CLUSTER,
    mutants=("labels-dropped",),
)
def test_a_generated_claim_is_named_after_its_pod(scenario):
    scenario.apply("claims/claim-of-a-pod.yaml")
    claim = scenario.pod("pod").should_have_claims().claims["device"]

    assert claim.name.rpartition("-")[0] == "pod-device"
    assert claim.labels == {"team": "cats"}
    assert claim.annotations == {"example.com/why": "to-play", "resource.kubernetes.io/pod-claim-name": "device"}


@requirement(
    "CLAIM-003",
    "A generated ResourceClaim must be owned by its pod, and be deleted with it.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    covers=("L7",),
    mutants=("unprepare-fails",),
)
def test_a_generated_claim_is_deleted_with_its_pod(scenario):
    scenario.apply("claims/claim-of-a-pod.yaml")
    pod = scenario.pod("pod").should_run()
    claim = pod.claims["device"]
    assert claim.owner == ("Pod", "pod")

    pod.delete().should_be_gone()

    claim.should_be_gone()


@requirement(
    "CLAIM-004",
    "A pod must get and see its device even if the name of its generated ResourceClaim must be shortened to 63 characters.",
    level=MUST,
    tier=E2E,
    source=API,
    covers=("L18",),
    mutants=("no-env",),
)
def test_long_names_are_truncated(scenario):
    scenario.apply("claims/long-names.yaml")
    pod = scenario.pod("a-pod-whose-name-has-just-as-many-characters-as-a-label-can-hol").should_run()
    claim = pod.claims["a-claim-with-a-name-that-has-as-many-characters-as-a-label-hold"]

    assert len(claim.name) <= 63
    assert pod.seen_devices == claim.devices


@requirement(
    "CLAIM-005",
    "Each pod of a Deployment must get a ResourceClaim of its own from the template, and see the device of that claim only.",
    level=MUST,
    tier=E2E,
    devices=2,
    spread=True,
    source=DOCS,
    given=("unshared",),
    covers=("L7",),
    mutants=("no-env",),
)
def test_each_pod_of_a_deployment_has_a_claim_of_its_own(scenario):
    scenario.apply("claims/deployment.yaml")
    first, second = scenario.pods_of("web", 2).should_run()

    assert first.seen_devices == first.devices
    assert second.seen_devices == second.devices
    assert first.devices & second.devices == NONE


@requirement(
    "CLAIM-006",
    "Each pod of a Job must get and see a device. "
    "When the pod has completed, its generated ResourceClaim must be deleted, although the pod remains.",
    level=MUST,
    tier=E2E,
    devices=2,
    spread=True,
    source=DOCS,
    given=("unshared",),
    covers=("L16",),
    mutants=("no-env", "env-of-another-device", "unprepare-fails"),
)
def test_the_claims_of_a_job_are_deleted_when_it_completes(scenario):
    scenario.apply("claims/job.yaml")
    first, second = pods = scenario.pods_of("sums", 2).should_run()
    devices = pods.devices

    first.container("sum").end()
    second.container("sum").end()
    pods.should_succeed()
    first.claims["device"].should_be_gone()
    second.claims["device"].should_be_gone()

    assert pods.printed_by("sum") == devices


@requirement(
    "CLAIM-007",
    "When a pod of a StatefulSet is replaced, the new pod must get a new generated ResourceClaim and see the device of that claim.",
    level=MUST,
    tier=E2E,
    devices=2,
    spread=True,
    source=DOCS,
    mutants=("no-env", "unprepare-fails"),
)
def test_a_replacement_pod_has_a_new_claim(scenario):
    scenario.apply("claims/stateful-set.yaml")
    first, _ = scenario.pods("db-0", "db-1").should_run()
    before, claim = first.uid, first.claims["device"].name

    first.delete().should_be_replaced(before)

    assert first.claims["device"].name != claim
    assert first.seen_devices == first.devices


@requirement(
    "CLAIM-008",
    "When a pod succeeds or fails, its generated ResourceClaim must be deleted and its other claim deallocated, although the pod remains.",
    level=MUST,
    tier=E2E,
    devices=2,
    source=DOCS,
    covers=("L15", "L16"),
    mutants=("unprepare-fails",),
)
@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 1)], ids=["succeeded", "failed"])
def test_a_finished_pod_releases_its_claims(scenario, phase, code):
    scenario.apply("claims/pod-that-ends.yaml", code=code)
    pod = scenario.pod("pod").should_end()
    assert pod.phase == phase

    pod.claims["device"].should_be_gone()
    scenario.claim("by-hand").should_be_deallocated()


@requirement(
    "CLAIM-009",
    "A restarted container must see the same devices as before, and its pod must keep its generated ResourceClaim.",
    level=MUST,
    tier=E2E,
    source="Kubernetes documentation: Pod Lifecycle, section Container restart policy; KEP-4381, section NodePrepareResource",
    covers=("L17", "G15"),
    mutants=("cdi-file-is-lost",),
)
def test_a_restarted_container_sees_the_same_devices(scenario):
    scenario.apply("claims/claim-of-a-pod.yaml")
    pod = scenario.pod("pod").should_run().should_stay_running()
    claim, devices = pod.claims["device"].uid, pod.devices

    container = pod.container("workload").restart()

    assert container.seen_devices == devices
    assert pod.claims["device"].uid == claim


@requirement(
    "CLAIM-038",
    "A pod must run without a claim if its status says that the claim is not needed, even if the claim's template does not exist.",
    level=MUST,
    tier=E2E,
    source="API reference: Pod v1 core, PodResourceClaimStatus.resourceClaimName",
    about=CLUSTER,
    covers=("L6",),
    mutants=("unneeded-claims-untold",),
)
def test_a_claim_is_not_needed(scenario):
    scenario.apply("claims/without-a-template.yaml")
    scenario.apply_status("claims/not-needed.yaml", by="controller")

    assert scenario.pod("pod").should_run().claims == {}
