"""What classes and claims say to a driver about their devices: who wins, for which devices, and for which driver."""

from testbed.conformance import CLUSTER, E2E, MUST, SHOULD, requirement

DOCS = "kubernetes.io: Dynamic Resource Allocation, device configuration"
API = "API reference: ResourceClaim v1 resource.k8s.io, DeviceClaimConfiguration"
ALLOCATION = "API reference: ResourceClaim v1 resource.k8s.io, DeviceAllocationConfiguration"
# The API hands all of it over, the class first, and leaves to drivers what wins. This is what SIG Node's example does.
ORDER = "sigs.k8s.io/dra-example-driver, GetOpaqueDeviceConfigs"


@requirement(
    "CONFIG-001",
    "What a claim says about its device is done to it, and the container shows it.",
    level=MUST,
    tier=E2E,
    features=("configuration",),
    source=API,
    covers=("L1",),
    mutants=("ignores-claim-config",),
)
def test_a_claim_configures_its_device(scenario):
    scenario.apply("configuration/claim.yaml")

    assert scenario.pod("pod").should_run().container("workload").settings == {"one"}


@requirement(
    "CONFIG-002",
    "What a class says about its devices is done to those of its users, who say nothing.",
    level=MUST,
    tier=E2E,
    features=("configuration",),
    source=DOCS,
    covers=("L1",),
    mutants=("ignores-class-config",),
)
def test_a_class_configures_the_devices_of_its_users(scenario):
    scenario.apply("configuration/class.yaml")

    assert scenario.pod("pod").should_run().container("workload").settings == {"one"}


@requirement(
    "CONFIG-003",
    "Where class and claim contradict each other, the claim wins.",
    level=SHOULD,
    tier=E2E,
    features=("configuration",),
    source=ORDER,
    covers=("W21",),
    mutants=("ignores-config-order", "ignores-claim-config"),
)
def test_the_claim_wins_over_the_class(scenario):
    scenario.apply("configuration/class-and-claim.yaml")

    assert scenario.pod("pod").should_run().container("workload").settings == {"other"}


@requirement(
    "CONFIG-004",
    "Where a claim contradicts itself, what it says last wins.",
    level=SHOULD,
    tier=E2E,
    features=("configuration",),
    source=ORDER,
    covers=("W21",),
    mutants=("ignores-config-order",),
)
def test_what_a_claim_says_last_wins(scenario):
    scenario.apply("configuration/twice.yaml")

    assert scenario.pod("pod").should_run().container("workload").settings == {"other"}


@requirement(
    "CONFIG-005",
    "What a claim says about one of its requests is done to the devices of that request and to no others.",
    level=MUST,
    tier=E2E,
    devices=2,
    features=("configuration", "per-container"),
    given=("unshared",),
    source=API,
    covers=("P4", "W21"),
    mutants=("ignores-config-scope",),
)
def test_configuration_is_for_the_request_that_it_names(scenario):
    scenario.apply("configuration/one-request.yaml")
    left, right = scenario.pod("pod").should_run().containers("only-left", "only-right")

    assert left.settings == {"one"}
    assert right.settings == frozenset()


@requirement(
    "CONFIG-006",
    "Each request of a claim may be configured in its own way.",
    level=MUST,
    tier=E2E,
    devices=2,
    features=("configuration", "per-container"),
    given=("unshared",),
    source=API,
    covers=("P4",),
    mutants=("ignores-config-scope", "forget-request-names"),
)
def test_each_request_has_its_own_configuration(scenario):
    scenario.apply("configuration/each-request.yaml")
    left, right = scenario.pod("pod").should_run().containers("only-left", "only-right")

    assert left.settings == {"one"}
    assert right.settings == {"other"}


@requirement(
    "CONFIG-007",
    "What is said about all requests is done to each, as far as nothing is said about it later.",
    level=SHOULD,
    tier=E2E,
    devices=2,
    features=("configuration", "per-container"),
    given=("unshared",),
    source=ORDER,
    covers=("W21",),
    mutants=("ignores-config-scope", "ignores-config-order"),
)
def test_configuration_of_all_requests_and_of_one(scenario):
    scenario.apply("configuration/all-and-one-request.yaml")
    left, right = scenario.pod("pod").should_run().containers("only-left", "only-right")

    assert left.settings == {"one"}
    assert right.settings == {"other"}


@requirement(
    "CONFIG-008",
    "The claims of a pod are configured each for itself.",
    level=MUST,
    tier=E2E,
    devices=2,
    features=("configuration", "per-container"),
    given=("unshared",),
    source=API,
    covers=("P4",),
    mutants=("ignores-claim-config",),
)
def test_each_claim_has_its_own_configuration(scenario):
    scenario.apply("configuration/two-claims.yaml")
    first, second = scenario.pod("pod").should_run().containers("has-first", "has-second")

    assert first.settings == {"one"}
    assert second.settings == {"other"}


@requirement(
    "CONFIG-009",
    "What a claim says to another driver is nothing to this one.",
    level=MUST,
    tier=E2E,
    features=("configuration",),
    source="API reference: ResourceClaim v1 resource.k8s.io, OpaqueDeviceConfiguration.driver",
    covers=("W21",),
    mutants=("takes-config-of-others",),
)
def test_configuration_of_another_driver(scenario):
    scenario.apply("configuration/of-others.yaml")
    pod = scenario.pod("pod").should_run()

    assert pod.seen_devices == pod.devices
    assert pod.container("workload").settings == frozenset()


@requirement(
    "CONFIG-010",
    "All pods that share a configured claim find its device configured.",
    level=MUST,
    tier=E2E,
    features=("configuration", "shared-claims"),
    source=API,
    mutants=("ignores-claim-config",),
)
def test_pods_share_a_configured_claim(scenario):
    scenario.apply("configuration/shared.yaml")
    first, second = scenario.pods("first", "second").should_run().containers("workload")

    assert first.settings == second.settings == {"one"}


@requirement(
    "CONFIG-011",
    "A container that is started again finds its device configured as before.",
    level=MUST,
    tier=E2E,
    features=("configuration",),
    source="kubernetes.io: Pod Lifecycle, container restart policy",
    covers=("G15",),
    mutants=("ignores-claim-config", "cdi-file-is-lost"),
)
def test_a_container_that_starts_again_is_configured(scenario):
    scenario.apply("configuration/claim.yaml")
    container = scenario.pod("pod").should_run().should_stay_running().container("workload")

    assert container.restart().settings == {"one"}


@requirement(
    "CONFIG-012",
    "The allocation keeps what class and claim said, the class first, so that drivers can tell them apart.",
    level=MUST,
    tier=E2E,
    features=("configuration",),
    source=ALLOCATION,
    about=CLUSTER,
    covers=("P4",),
    mutants=("configuration-dropped", "class-configures-alone"),
)
def test_the_allocation_keeps_the_configuration(scenario):
    scenario.apply("configuration/class-and-claim.yaml")
    scenario.pod("pod").should_run()

    assert scenario.claim("configured").configured_by == ("FromClass", "FromClaim")
    assert scenario.claim("configured").configured_as == ("one", "other")
