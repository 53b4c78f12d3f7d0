"""Published devices are like the driver file declares them. The tests create no objects."""

from testbed.conformance import MAY, MUST, SHOULD, STATIC, requirement

DECLARED = "the driver file: spec.devices"
OPTIONAL = "the driver file: spec.optional"


@requirement(
    "SLICE-010",
    "An ordinary device must not have allowMultipleAllocations unless the driver file declares that several claims can share it.",
    level=MUST,
    tier=STATIC,
    given=("unshared",),
    source="API reference: ResourceSlice v1 resource.k8s.io, Device",
    mutants=("slices-missing", "pools-without-devices", "one-ordinary-device-shared"),
)
def test_ordinary_devices_are_not_shared(driver):
    assert driver.devices
    assert driver.contradictions.shared_devices == ()


@requirement(
    "SLICE-011",
    "Every ordinary device must belong to a node if the driver file declares belongTo: node.",
    level=MUST,
    tier=STATIC,
    given=("local",),
    source=DECLARED,
    mutants=(
        "slices-missing",
        "pools-without-devices",
        "slices-for-all-nodes",
    ),
)
def test_ordinary_devices_belong_to_nodes(driver):
    assert driver.devices
    assert driver.contradictions.devices_without_node == ()


@requirement(
    "SLICE-012",
    "Each expected node must have at least as many ordinary devices as the driver file promises with perNode.",
    level=MUST,
    tier=STATIC,
    source=DECLARED,
    mutants=(
        "slices-missing",
        "pools-without-devices",
        "taints-nodes-on-which-it-fails",
    ),
)
def test_each_node_has_the_promised_devices(driver):
    assert driver.nodes
    assert driver.contradictions.nodes_with_too_few_devices == ()


@requirement(
    "SLICE-013",
    "Each expected node must have the whole devices and the partitions that the driver file promises.",
    level=MUST,
    tier=STATIC,
    features=("partitions",),
    source=OPTIONAL,
    gates=("DRAPartitionableDevices",),
    mutants=("slices-missing", "counters-missing", "counters-doubled"),
)
def test_each_node_has_the_promised_partitions(driver):
    assert driver.nodes
    assert driver.contradictions.partitions == ()


@requirement(
    "SLICE-014",
    "Each expected node must have at least as many devices that several claims can share as the driver file promises.",
    level=MUST,
    tier=STATIC,
    features=("capacity",),
    source=OPTIONAL,
    gates=("DRAConsumableCapacity",),
    mutants=("slices-missing", "sharing-missing"),
)
def test_each_node_has_the_promised_shared_devices(driver):
    assert driver.nodes
    assert driver.contradictions.nodes_with_too_few_shareable_devices == ()


@requirement(
    "SLICE-015",
    "Every ordinary device must have the attributes and capacities that the driver file expects.",
    level=MUST,
    tier=STATIC,
    source=DECLARED,
    unproven="the driver files of the fake drivers expect no values, because any hardware file can replace their devices",
)
def test_ordinary_devices_have_the_expected_values(driver):
    assert driver.devices
    assert driver.contradictions.unexpected_values == ()


@requirement(
    "SLICE-016",
    "An ordinary device should have consumesCounters, allowMultipleAllocations, bindingConditions or taints only if the driver file "
    "names its class for that feature in spec.optional, or lists the device in spec.devices.others.",
    level=SHOULD,
    tier=STATIC,
    source=OPTIONAL,
    mutants=("one-ordinary-device-shared", "one-ordinary-device-tainted"),
)
def test_the_features_of_ordinary_devices_are_declared(driver):
    assert driver.devices
    assert driver.contradictions.undeclared_features == ()


@requirement(
    "SLICE-017",
    "Each ordinary device may have an attribute of type version, such as that of the driver or of its runtime, "
    "so that claims can select devices by version.",
    level=MAY,
    tier=STATIC,
    source="API reference: ResourceSlice v1 resource.k8s.io, DeviceAttribute.version",
    mutants=("versions-as-strings",),
)
def test_devices_have_a_version(driver):
    assert driver.devices
    assert driver.contradictions.devices_without_version == ()
