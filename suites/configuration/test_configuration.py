"""Opaque configuration in DeviceClasses and ResourceClaims: precedence, requests and drivers."""

from testbed.conformance import CLUSTER, E2E, MUST, NONE, SHOULD, requirement

DOCS = "API reference: DeviceClass v1 resource.k8s.io, DeviceClassConfiguration"
API = "API reference: ResourceClaim v1 resource.k8s.io, DeviceClaimConfiguration"
ALLOCATION = "API reference: ResourceClaim v1 resource.k8s.io, DeviceAllocationConfiguration"
# The API lists all entries, those of the class first, and leaves precedence to drivers.
DECLARED = "the driver file: spec.configuration.precedence"


@requirement(
    "CONFIG-001",
    "The driver must apply the configuration in a ResourceClaim to the claim's device.",
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
    "The driver must apply the configuration in a DeviceClass to the devices of claims without configuration of their own.",
    level=MUST,
    tier=E2E,
    features=("configuration",),
    source=DOCS,
    covers=("L1",),
    mutants=("ignores-class-config",),
    given=("unconfigured",),
)
def test_a_class_configures_the_devices_of_its_claims(scenario):
    scenario.apply("configuration/class.yaml")

    assert scenario.pod("pod").should_run().container("workload").settings == {"one"}


@requirement(
    "CONFIG-003",
    "If a DeviceClass and a ResourceClaim contain contradictory configuration, the driver should apply "
    "the one that its driver file declares.",
    level=SHOULD,
    tier=E2E,
    features=("configuration", "configuration-precedence", "two-configurations"),
    source=DECLARED,
    covers=("W21",),
    mutants=("ignores-config-order", "ignores-claim-config"),
)
def test_class_and_claim_contradict_each_other(scenario, driver):
    scenario.apply("configuration/class-and-claim.yaml")
    container = scenario.pod("pod").should_run().container("workload")

    assert container.settings == driver.effective_setting("one", "other")


@requirement(
    "CONFIG-004",
    "If a ResourceClaim contains contradictory configuration, the driver should apply the entry that its driver file declares.",
    level=SHOULD,
    tier=E2E,
    features=("configuration", "configuration-precedence", "two-configurations"),
    source=DECLARED,
    covers=("W21",),
    mutants=("ignores-config-order",),
)
def test_two_entries_of_a_claim_contradict_each_other(scenario, driver):
    scenario.apply("configuration/twice.yaml")
    container = scenario.pod("pod").should_run().container("workload")

    assert container.settings == driver.effective_setting("one", "other")


@requirement(
    "CONFIG-005",
    "The driver must apply configuration for one request of a claim to the devices of that request only.",
    level=MUST,
    tier=E2E,
    devices=2,
    features=("configuration",),
    given=("unshared", "unconfigured"),
    source=API,
    covers=("P4", "W21"),
    mutants=("ignores-config-scope",),
)
def test_configuration_applies_to_the_request_that_it_names(scenario):
    scenario.apply("configuration/one-request.yaml")
    container = scenario.pod("pod").should_run().container("workload")

    assert container.settings_of_devices == ("one",)


@requirement(
    "CONFIG-006",
    "The driver must apply to each request of a claim the configuration for that request.",
    level=MUST,
    tier=E2E,
    devices=2,
    features=("configuration", "two-configurations"),
    given=("unshared",),
    source=API,
    covers=("P4",),
    mutants=("ignores-config-scope", "ignores-claim-config"),
)
def test_each_request_has_its_own_configuration(scenario):
    scenario.apply("configuration/each-request-in-one-container.yaml")
    container = scenario.pod("pod").should_run().container("workload")

    assert container.settings_of_devices == ("one", "other")


@requirement(
    "CONFIG-007",
    "The driver must apply configuration for all requests to each request that has no configuration of its own.",
    level=MUST,
    tier=E2E,
    devices=2,
    features=("configuration", "two-configurations"),
    given=("unshared",),
    source=API,
    covers=("W21",),
    mutants=("ignores-config-scope", "ignores-claim-config"),
)
def test_configuration_of_all_requests_and_of_one(scenario):
    scenario.apply("configuration/all-and-one-request.yaml")
    container = scenario.pod("pod").should_run().container("workload")

    assert "one" in container.settings


@requirement(
    "CONFIG-008",
    "The driver must apply to each claim of a pod the configuration of that claim.",
    level=MUST,
    tier=E2E,
    devices=2,
    features=("configuration", "two-configurations"),
    given=("unshared",),
    source=API,
    covers=("P4",),
    mutants=("ignores-claim-config",),
)
def test_each_claim_has_its_own_configuration(scenario):
    scenario.apply("configuration/two-claims.yaml")
    first, second = scenario.pod("pod").should_run().containers("has-first", "has-second")

    assert "one" in first.settings
    assert "other" in second.settings


@requirement(
    "CONFIG-009",
    "The driver must ignore configuration that is meant for another driver, and prepare the claim.",
    level=MUST,
    tier=E2E,
    features=("configuration",),
    source="API reference: ResourceClaim v1 resource.k8s.io, OpaqueDeviceConfiguration.driver",
    covers=("W21",),
    mutants=("takes-config-of-others",),
    given=("unconfigured",),
)
def test_configuration_of_another_driver_is_ignored(scenario):
    scenario.apply("configuration/claim.yaml")
    configured = scenario.pod("pod").should_run()
    assert configured.container("workload").settings == {"one"}
    configured.delete().should_be_gone()
    scenario.delete("resourceclaimtemplate", "configured")

    scenario.apply("configuration/of-others.yaml")
    pod = scenario.pod("pod").should_run()

    assert pod.seen_devices == pod.devices
    assert pod.container("workload").settings == NONE


@requirement(
    "CONFIG-010",
    "The driver must apply the configuration of a shared claim for all pods that use it.",
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
    "The configuration of a device must still be in effect in a restarted container.",
    level=MUST,
    tier=E2E,
    features=("configuration",),
    source="Kubernetes documentation: Pod Lifecycle, section Container restart policy",
    covers=("G15",),
    mutants=("ignores-claim-config", "cdi-file-is-lost"),
)
def test_a_restarted_container_is_configured(scenario):
    scenario.apply("configuration/claim.yaml")
    container = scenario.pod("pod").should_run().should_stay_running().container("workload")

    assert container.restart().settings == {"one"}


@requirement(
    "CONFIG-012",
    "The allocation must contain the configuration of the DeviceClass and then that of the ResourceClaim, each with its source.",
    level=MUST,
    tier=E2E,
    features=("configuration", "two-configurations"),
    source=ALLOCATION,
    about=CLUSTER,
    covers=("P4",),
    mutants=("configuration-dropped", "class-configures-alone"),
)
def test_the_allocation_keeps_the_configuration(scenario):
    scenario.apply("configuration/class-and-claim.yaml")
    scenario.pod("pod").should_be_scheduled()

    assert scenario.claim("configured").configuration_sources == ("FromClass", "FromClaim")
    assert scenario.claim("configured").configuration_settings == ("one", "other")


@requirement(
    "CONFIG-013",
    "Configuration must end with its claim: the next claim on the same device, without configuration, must not show it.",
    level=MUST,
    tier=E2E,
    exclusive=True,  # the device has to be free for the second claim
    features=("configuration",),
    given=("local", "unshared", "alone", "unconfigured"),
    source="KEP-4381, section NodeUnprepareResources",
    mutants=("configuration-outlives-its-claim",),
    counts=(1,),
)
def test_configuration_ends_with_its_claim(scenario):
    scenario.apply("configuration/claim.yaml")
    first = scenario.pod("pod").should_run()
    (device,), node = first.devices, first.node
    assert first.container("workload").settings == {"one"}
    first.delete().should_be_gone()

    scenario.apply("basic/pod-and-claim.yaml", claim="next", node=node)
    scenario.apply_status("basic/allocation.yaml", claim="next", node=node, pool=device.pool, name=device.name)
    scenario.claim("next").should_be_reserved_for("next")
    following = scenario.pod("next").trigger_sync().should_run()

    assert following.seen_devices == {device}
    assert following.container("workload").settings == NONE


@requirement(
    "CONFIG-015",
    "A container must have the configuration of the claims that it refers to, and no configuration of other claims of its pod.",
    level=MUST,
    tier=E2E,
    devices=2,
    features=("configuration", "per-container", "two-configurations"),
    given=("unshared",),
    source=API,
    mutants=("ignores-claim-config",),
)
def test_a_container_has_the_configuration_of_its_claim_only(scenario):
    scenario.apply("configuration/two-claims.yaml")
    first, second = scenario.pod("pod").should_run().containers("has-first", "has-second")

    assert first.settings == {"one"}
    assert second.settings == {"other"}


@requirement(
    "CONFIG-016",
    "A container that refers to one request of a claim must have the configuration for that request, and no other.",
    level=MUST,
    tier=E2E,
    devices=2,
    features=("configuration", "one-request", "per-container", "shared-by-containers", "two-configurations"),
    given=("unshared",),
    source=API,
    mutants=("ignores-config-scope", "forget-request-names"),
)
def test_a_container_has_the_configuration_of_its_request_only(scenario):
    scenario.apply("configuration/each-request.yaml")
    left, right = scenario.pod("pod").should_run().containers("only-left", "only-right")

    assert left.settings == {"one"}
    assert right.settings == {"other"}
