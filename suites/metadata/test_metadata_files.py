"""Device metadata: files in a container that describe its devices, at well-known paths."""

from testbed.conformance import E2E, MUST, NONE, SHOULD, requirement

DOCS = "KEP-5304, DRA attributes downward API"
FILES = "Kubernetes documentation: Dynamic Resource Allocation, section Device metadata protocol"


@requirement(
    "META-001",
    "For a claim that the pod refers to by name, a container must find a file below resourceclaims/ "
    "that names the claim and the devices of the request.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("metadata",),
    mutants=("mounts-missing", "metadata-of-another-namespace"),
    covers=("M1",),
)
def test_a_claim_by_name_has_a_metadata_file(scenario):
    scenario.apply("basic/claim-by-name.yaml")
    container, claim = scenario.pod("pod").should_run().container("workload"), scenario.claim("my-device")
    found = container.metadata("resourceclaims/my-device/device")

    assert found.claim == (scenario.namespace, "my-device", claim.uid)
    assert found.generation >= 1
    assert found.devices == claim.devices


@requirement(
    "META-002",
    "For a generated claim, a container must find a file below resourceclaimtemplates/, under the pod's name "
    "for the claim, that names the claim and its devices.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("metadata",),
    mutants=("mounts-missing", "metadata-of-another-namespace"),
    covers=("M3",),
)
def test_a_claim_from_a_template_has_a_metadata_file(scenario):
    scenario.apply("metadata/template.yaml")
    pod = scenario.pod("pod").should_run()
    found, claim = pod.container("workload").metadata("resourceclaimtemplates/device/device"), pod.claims["device"]

    assert found.pod_claim == "device"
    assert found.claim == (scenario.namespace, claim.name, claim.uid)
    assert found.devices == pod.devices


@requirement(
    "META-003",
    "A container must find the metadata files of the requests that it refers to, and no others.",
    level=MUST,
    tier=E2E,
    devices=2,
    source=DOCS,
    features=("metadata", "one-request", "shared-by-containers"),
    mutants=("mounts-missing", "first-device-only", "forget-request-names"),
    covers=("M2",),
)
def test_each_container_has_the_files_of_its_own_claims(scenario):
    scenario.apply("basic/two-requests.yaml")
    left, right = scenario.pod("pod").should_run().containers("left", "right")

    assert left.metadata("resourceclaims/both/left").devices == left.devices
    assert right.metadata("resourceclaims/both/right").devices == right.devices
    assert left.metadata_files & right.metadata_files == NONE


@requirement(
    "META-004",
    "An attribute that is both in a metadata file and in the ResourceSlice of the device must have the same value.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("metadata",),
    mutants=("mounts-missing", "publish-attributes-of-another-device"),
    counts=(1,),
)
def test_the_metadata_matches_the_slice(scenario, driver):
    scenario.apply("basic/claim-by-name.yaml")
    pod = scenario.pod("pod").should_run()
    (device,) = pod.devices
    metadata = pod.container("workload").metadata("resourceclaims/my-device/device")
    found = metadata.attributes(device)

    assert metadata.devices == {device}
    # Either side may have attributes that the other does not have.
    assert found | driver.common_attributes(device, found) == found


@requirement(
    "META-015",
    "A metadata file should contain the attributes by which users select the device.",
    level=SHOULD,
    tier=E2E,
    source=DOCS,
    features=("metadata", "example-attribute"),
    mutants=("metadata-without-attributes",),
    counts=(1,),
)
def test_the_metadata_contains_the_example_attribute(scenario, driver):
    scenario.apply("basic/claim-by-name.yaml")
    pod = scenario.pod("pod").should_run()
    (device,) = pod.devices
    found = pod.container("workload").metadata("resourceclaims/my-device/device").attributes(device)

    assert driver.published_value(device, driver.examples.attribute).full_name in found


@requirement(
    "META-005",
    "A metadata file with several API versions should list the newest version first.",
    level=SHOULD,
    tier=E2E,
    source=FILES,
    features=("metadata",),
    mutants=("metadata-oldest-first",),
    covers=("M1",),
)
def test_the_newest_metadata_version_comes_first(scenario):
    scenario.apply("basic/claim-by-name.yaml")
    metadata = scenario.pod("pod").should_run().container("workload").metadata("resourceclaims/my-device/device")

    assert metadata.versions == metadata.newest_first


@requirement(
    "META-014",
    "If one request has devices of two drivers, a container must find a metadata file of the driver that lists only the driver's device.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DOCS,
    features=("metadata", "companion", "identity"),
    given=("local", "one-class"),
    mutants=("mounts-missing", "mounts-hide-those-of-others"),
    covers=("M4",),
    counts=(2,),
)
def test_two_drivers_allocate_devices_for_one_request(scenario, driver, node):
    own, other = max(driver.devices_on(node)), max(driver.companion_with_identity.devices_on(node))
    identities = {"own": driver.identity(own), "other": driver.companion_with_identity.identity(other)}
    scenario.apply("metadata/two-drivers.yaml", other_driver=driver.companion.name, **identities)
    container, claim = scenario.pod("pod").should_run().container("workload"), scenario.claim("both")

    assert claim.devices == {own, other}
    assert container.metadata("resourceclaims/both/devices").devices == {own}
