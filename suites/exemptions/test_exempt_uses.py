"""What a driver must still do if its driver file exempts it from a part of DRA: refuse the exempt use, but never do it wrong silently."""

from testbed.conformance import E2E, MUST, NONE, requirement

POD = "API reference: Pod v1 core, ResourceRequirements.claims"
SHARED = "Kubernetes documentation: Dynamic Resource Allocation, section ResourceClaims and ResourceClaimTemplates"


@requirement(
    "EXEMPT-001",
    "If a driver does not support several pods of a claim, a second pod must not run without the device of the claim.",
    level=MUST,
    tier=E2E,
    source=SHARED,
    features=("exempt:shared-claims",),
    mutants=("cdi-file-is-replaced",),
)
def test_a_second_pod_of_a_claim_does_not_run_without_its_device(scenario, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    first = scenario.pod("pod").should_run().should_stay_running()
    assert first.seen_devices == first.devices

    scenario.apply("basic/second-pod.yaml")

    scenario.pod("second").should_run_or_be_refused()


@requirement(
    "EXEMPT-002",
    "If a driver does not support several containers of a claim, none of them must run without the device of the claim.",
    level=MUST,
    tier=E2E,
    devices=2,
    spread=True,
    source=POD,
    features=("exempt:shared-by-containers",),
    mutants=("cdi-file-is-replaced",),
)
def test_no_container_of_a_claim_runs_without_its_device(scenario):
    scenario.apply("exemptions/plain-pod.yaml")
    plain = scenario.pod("plain").should_run()
    assert plain.seen_devices == plain.devices

    scenario.apply("exemptions/two-containers.yaml")

    scenario.pod("pod").should_run_or_be_refused()


@requirement(
    "EXEMPT-003",
    "If a driver does not support several claims in a container, the container must not run without the device of one of them.",
    level=MUST,
    tier=E2E,
    devices=3,
    source=POD,
    features=("exempt:several-claims",),
    given=("unshared",),
    mutants=("share-one-device", "answer-for-the-wrong-claim"),
)
def test_a_container_of_two_claims_does_not_run_without_one_of_them(scenario):
    scenario.apply("exemptions/plain-pod.yaml")
    scenario.pod("plain").should_run()

    scenario.apply("exemptions/two-claims.yaml")

    scenario.pod("pod").should_run_or_be_refused()


@requirement(
    "EXEMPT-004",
    "If a driver does not support a container that refers to one request of a claim, the container must not run without its device.",
    level=MUST,
    tier=E2E,
    devices=3,
    source=POD,
    features=("exempt:one-request",),
    given=("unshared",),
    mutants=("forget-request-names",),
)
def test_a_container_of_one_request_does_not_run_without_its_device(scenario):
    scenario.apply("exemptions/plain-pod.yaml")
    plain = scenario.pod("plain").should_run()
    assert plain.seen_devices == plain.devices

    scenario.apply("exemptions/one-request.yaml")

    scenario.pod("pod").should_run_or_be_refused()


@requirement(
    "EXEMPT-005",
    "If a driver adds the devices of a claim to all containers of a pod, they must see all devices of their pod and none of other pods.",
    level=MUST,
    tier=E2E,
    devices=2,
    source=POD,
    features=("exempt:per-container",),
    given=("local", "unshared"),
    mutants=("share-one-device", "no-env"),
)
def test_containers_see_no_devices_of_other_pods(scenario, node):
    scenario.apply("exemptions/two-pods.yaml", node=node)
    first, second = scenario.pods("first", "second").should_run()

    assert first.container("with").seen_devices == first.devices
    assert second.container("with").seen_devices == second.devices
    assert first.container("without").seen_devices - first.devices == NONE


@requirement(
    "EXEMPT-006",
    "If a driver does not support admin access, a pod with admin access must not run without its devices.",
    level=MUST,
    tier=E2E,
    source="Kubernetes documentation: Dynamic Resource Allocation, section Admin access",
    features=("exempt:admin-access",),
    gates=("DRAAdminAccess",),
    given=("few",),
    counts=("all",),
    mutants=("no-env-for-administrators",),
)
def test_a_monitor_does_not_run_without_its_devices(admin_scenario, node):
    admin_scenario.apply("basic/pod-on-a-node.yaml", node=node)
    user = admin_scenario.pod("pod").should_run()

    admin_scenario.apply("exemptions/monitor.yaml", node=node)

    admin_scenario.pod("monitor").should_run_or_be_refused()
    assert user.should_stay_running().seen_devices == user.devices
