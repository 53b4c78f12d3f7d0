"""Containers see the devices of the claims that they refer to."""

from testbed.conformance import E2E, MUST, NONE, Capability, requirement

DOCS = "Kubernetes documentation: Allocate Devices to Workloads with DRA"
POD = "API reference: Pod v1 core, ResourceRequirements.claims"


@requirement(
    "CLAIM-010",
    "A pod that refers to an existing ResourceClaim by name must see the device of that claim.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    covers=("L9",),
    mutants=(
        "no-env",
        "wrong-cdi-names",
    ),
)
def test_a_pod_refers_to_a_claim_by_name(scenario):
    scenario.apply("basic/claim-by-name.yaml")
    pod = scenario.pod("pod").should_run()

    assert pod.seen_devices == scenario.claim("my-device").devices


@requirement(
    "CLAIM-011",
    "Init containers and sidecars must see the devices of the claims that they refer to, as other containers do.",
    level=MUST,
    tier=E2E,
    devices=3,
    source=POD,
    given=("unshared",),
    covers=("L12", "L14", "G15"),
    mutants=(
        "no-env",
        "wrong-cdi-names",
    ),
)
def test_init_containers_and_sidecars_see_the_devices(scenario):
    scenario.apply("claims/init-container.yaml")
    pod = scenario.pod("pod").should_run()
    first, sidecar, workload = pod.containers("first", "sidecar", "workload")

    assert first.printed_devices >= first.devices
    assert sidecar.seen_devices >= sidecar.devices
    assert workload.seen_devices >= workload.devices


@requirement(
    "CLAIM-012",
    "A container that refers to no claim must see no device, even if other containers of its pod see one.",
    level=MUST,
    tier=E2E,
    source=POD,
    features=("per-container",),
    covers=("G16",),
    mutants=(
        "no-env",
        "claims-leak-to-all-containers",
    ),
)
def test_a_container_without_a_claim_sees_nothing(scenario):
    scenario.apply("basic/with-and-without.yaml")
    pod = scenario.pod("pod").should_run()
    with_claim, without = pod.containers("with", "without")

    assert with_claim.seen_devices == pod.devices
    assert without.reachable_devices == NONE


@requirement(
    "CLAIM-013",
    "A container that refers to one request of a claim must see the devices of that request and no others.",
    level=MUST,
    tier=E2E,
    devices=2,
    source=POD,
    features=("per-container", "one-request", "shared-by-containers"),
    given=("unshared",),
    covers=("P4", "G16"),
    mutants=(
        "forget-request-names",
        "first-device-only",
        "answer-without-request-names",
        "claims-leak-to-all-containers",
    ),
)
def test_a_container_refers_to_one_request_of_a_claim(scenario):
    scenario.apply("basic/whole-claim-and-requests.yaml")
    left, right = scenario.pod("pod").should_run().containers("only-left", "only-right")

    assert left.seen_devices == left.devices
    assert right.seen_devices == right.devices
    assert left.devices & right.devices == NONE


@requirement(
    "CLAIM-014",
    "A container that refers to a whole claim must see the devices of all its requests.",
    level=MUST,
    tier=E2E,
    devices=2,
    source=POD,
    given=("unshared",),
    covers=("P4",),
    mutants=("first-device-only", "no-env"),
)
def test_a_container_refers_to_a_whole_claim(scenario, driver):
    scenario.apply("claims/whole-claim.yaml")
    pod = scenario.pod("pod").should_run()

    assert pod.seen_devices == pod.devices
    assert len(pod.devices) == driver.devices_for(claims=2)


@requirement(
    "CLAIM-015",
    "A pod with several claims, some referenced by name and some generated, must get a different device for each claim, "
    "and its containers must see them all.",
    level=MUST,
    tier=E2E,
    devices=3,
    source=DOCS,
    given=("unshared",),
    mutants=(
        "share-one-device",
        "no-env",
        "one-cdi-file-for-all",
    ),
)
def test_a_pod_has_several_claims(scenario, driver):
    scenario.apply("claims/several-claims.yaml")
    pod = scenario.pod("pod").should_run()

    assert len(pod.devices) == driver.devices_for(claims=3)
    assert pod.seen_devices == pod.devices


@requirement(
    "CLAIM-018",
    "In one pod, a container with a generated claim of its own must see only that device, while containers "
    "that share another claim must see that claim's device.",
    level=MUST,
    tier=E2E,
    devices=2,
    source=DOCS,
    features=("per-container", "shared-by-containers"),
    given=("unshared",),
    mutants=(
        "share-one-device",
        "no-env",
        "claims-leak-to-all-containers",
    ),
)
def test_containers_share_one_claim_and_have_a_claim_of_their_own(scenario):
    scenario.apply("claims/job-of-three-containers.yaml")
    (pod,) = scenario.pods_of("mixed", 1).should_run()
    alone, one, other = pod.containers("container0", "container1", "container2")

    assert one.seen_devices == other.seen_devices == scenario.claim("shared-device").devices
    assert alone.seen_devices == alone.devices
    assert alone.devices & one.devices == NONE


@requirement(
    "CLAIM-016",
    "A claim that no container refers to must be allocated for its pod. The pod must run and see no device of other claims.",
    level=MUST,
    tier=E2E,
    source="KEP-4381, section Managing resources",
    mutants=("forget-registration-socket", "no-env"),
)
def test_a_claim_that_no_container_refers_to(scenario, node):
    scenario.apply("basic/pod-on-a-node.yaml", node=node)
    with_claim = scenario.pod("pod").should_run()
    assert with_claim.seen_devices == with_claim.devices

    with_claim.delete().should_be_gone()
    scenario.apply("claims/unused-claim.yaml", node=node)
    pod = scenario.pod("pod").should_run()

    assert pod.devices
    assert pod.seen_devices - pod.devices == NONE


@requirement(
    "CLAIM-031",
    "A container that refers to several claims must see the devices of all of them.",
    level=MUST,
    tier=E2E,
    devices=3,
    source=POD,
    features=("several-claims",),
    given=("unshared",),
    mutants=("share-one-device", "no-env", "one-cdi-file-for-all"),
)
def test_a_container_refers_to_several_claims(scenario):
    scenario.apply("claims/container-with-several-claims.yaml")
    pod = scenario.pod("pod").should_run()

    assert pod.container("workload").seen_devices == pod.devices


@requirement(
    "CLAIM-032",
    "Init containers, sidecars and other containers that refer to one claim must all see its device.",
    level=MUST,
    tier=E2E,
    source=POD,
    features=("shared-by-containers",),
    mutants=("no-env", "wrong-cdi-names"),
)
def test_containers_of_each_kind_share_a_claim(scenario):
    scenario.apply("claims/containers-share-a-claim.yaml")
    pod = scenario.pod("pod").should_run()
    first, sidecar, workload = pod.containers("first", "sidecar", "workload")

    assert first.printed_devices == sidecar.seen_devices == workload.seen_devices == pod.devices


@requirement(
    "CLAIM-029",
    "If no container of a pod refers to its claim, no container must see the device of the claim.",
    level=MUST,
    tier=E2E,
    source="KEP-4381, section Managing resources",
    features=("per-container",),
    mutants=("leak-to-every-container", "no-env"),
)
def test_nothing_is_seen_of_a_claim_that_no_container_refers_to(scenario, node):
    scenario.apply("basic/pod-on-a-node.yaml", node=node)
    with_claim = scenario.pod("pod").should_run()
    assert with_claim.seen_devices == with_claim.devices

    with_claim.delete().should_be_gone()
    scenario.apply("claims/unused-claim.yaml", node=node)

    assert scenario.pod("pod").should_run().container("workload").reachable_devices == NONE


@requirement(
    "CLAIM-019",
    "A claim that no container refers to must be prepared for its pod, and unprepared when the pod has ended.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    needs=(Capability.KUBELET_METRICS,),
    source="KEP-4381, section Managing resources",
    covers=("P3",),
    mutants=("forget-registration-socket", "unprepare-fails", "pods-lose-their-claims"),
)
def test_a_claim_that_no_container_refers_to_is_prepared(scenario, kubelets, node):
    before = kubelets.claims_in_use(node)
    scenario.apply("claims/unused-claim.yaml", node=node)
    pod = scenario.pod("pod").should_run()
    assert kubelets.claims_in_use(node) == before + 1

    pod.delete().should_be_gone()

    kubelets.should_have_claims_in_use(node, before)


@requirement(
    "CLAIM-017",
    "If one claim of a pod is already prepared for another pod and one is not, the pod must see the devices of both.",
    level=MUST,
    tier=E2E,
    devices=2,
    source="github.com/kubernetes/kubernetes, issue 135919",
    features=("shared-claims",),
    given=("local", "unshared"),
    covers=("P9", "#135919"),
    mutants=(
        "no-env",
        "share-one-device",
        "one-cdi-file-for-all",
    ),
)
def test_a_pod_has_a_prepared_claim_and_a_new_one(scenario):
    scenario.apply("claims/first-pod.yaml")
    first = scenario.pod("first").should_run()

    scenario.apply("claims/second-pod.yaml")
    second = scenario.pod("second").should_run()

    assert second.seen_devices == second.devices
    assert first.devices < second.devices
