"""Published ResourceSlices are complete and consistent, also while devices are in use."""

from testbed.conformance import E2E, MUST, SHOULD, STATIC, requirement


@requirement(
    "SLICE-001",
    "Every pool of the driver must be complete: its newest generation must have as many ResourceSlices as its resourceSliceCount says.",
    level=MUST,
    tier=STATIC,
    source="API reference: ResourceSlice v1 resource.k8s.io, ResourcePool",
    mutants=("slices-missing", "count-one-slice-too-many"),
)
def test_every_pool_is_complete(driver):
    assert driver.pools, "the driver publishes no ResourceSlice"
    assert not driver.incomplete_pools


@requirement(
    "SLICE-002",
    "The driver must not publish two devices with the same name in one pool.",
    level=MUST,
    tier=STATIC,
    source="API reference: ResourceSlice v1 resource.k8s.io, ResourceSliceSpec",
    mutants=("slices-missing", "pools-without-devices", "publish-devices-twice"),
)
def test_no_device_is_published_twice(driver):
    assert not driver.duplicate_devices


@requirement(
    "SLICE-003",
    "A ResourceSlice with spec.nodeName should have that Node as its owner, so that it is deleted with the node.",
    level=SHOULD,
    tier=STATIC,
    source="k8s.io/dynamic-resource-allocation: resourceslice/resourceslicecontroller.go, Owner",
    covers=("R1",),
    mutants=("slices-missing", "slices-without-owner"),
)
def test_the_slices_of_a_node_are_owned_by_the_node(driver):
    assert driver.pools, "the driver publishes no ResourceSlice"
    assert driver.ownerless_slices == ()


@requirement(
    "SLICE-004",
    "All ResourceSlices of a pool must have the same generation and the same resourceSliceCount.",
    level=MUST,
    tier=STATIC,
    source="API reference: ResourceSlice v1 resource.k8s.io, ResourcePool",
    mutants=("slices-missing", "slices-count-differently"),
)
def test_the_slices_of_a_pool_agree(driver):
    assert driver.pools, "the driver publishes no ResourceSlice"
    assert driver.inconsistent_pools == ()


@requirement(
    "SLICE-018",
    "A device should stay in its ResourceSlice while a claim uses it, so that administrators and their pods can still find it.",
    level=SHOULD,
    tier=E2E,
    source="KEP-4381, section ResourceSlice; k8s.io/dynamic-resource-allocation: kubeletplugin/draplugin.go, PublishResources",
    mutants=("unpublishes-devices-in-use",),
)
def test_a_device_in_use_stays_published(scenario, driver, node):
    seen = driver.watch_pools(node)
    scenario.apply("basic/pod-on-a-node.yaml", node=node)

    assert scenario.pod("pod").should_run().should_stay_running().devices
    assert seen.lost_devices_in_use == ()
