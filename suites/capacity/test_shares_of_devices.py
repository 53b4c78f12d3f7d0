"""Consumable capacity: several claims share the capacity of one device."""

from testbed.conformance import CLUSTER, E2E, MUST, NONE, SHOULD, Capability, messages, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section Consumable capacity"
KEP = "KEP-5075, DRA consumable capacity"
POLICY = "API reference: ResourceSlice v1 resource.k8s.io, CapacityRequestPolicy"


@requirement(
    "CAP-001",
    "Two pods must be able to use shares of one device at the same time, and both must see the device.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source=DOCS,
    features=("capacity", "identity"),
    gates=("DRAConsumableCapacity",),
    mutants=(
        "shares-exclude-each-other",
        "sharing-missing",
        "no-env",
    ),
    covers=("CC1",),
)
def test_two_pods_share_a_device(scenario, driver, node):
    device, *_ = driver.shareable_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("capacity/two-pods.yaml", **wanted)
    left, right = scenario.pods("left", "right").should_run()

    assert left.seen_devices == right.seen_devices == {device}


@requirement(
    "CAP-002",
    "Each share of a device must have a shareID of its own in the allocation of its claim.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source=KEP,
    features=("capacity", "identity"),
    gates=("DRAConsumableCapacity",),
    about=CLUSTER,
    mutants=("share-ids-alike",),
)
def test_each_share_has_an_id(scenario, driver, node):
    device, *_ = driver.shareable_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("capacity/two-pods.yaml", **wanted)
    scenario.pods("left", "right").should_be_scheduled()
    left, right = scenario.claim("left").share_ids, scenario.claim("right").share_ids

    assert len(left) == len(right) == 1
    assert left != right


@requirement(
    "CAP-003",
    "When the capacity of a device is used up, another pod must wait. "
    "Once a share is released, the waiting pod must run and see the device.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source=DOCS,
    features=("capacity", "identity"),
    gates=("DRAConsumableCapacity",),
    mutants=(
        "sharing-missing",
        "unprepare-fails",
        "no-env",
    ),
)
def test_a_pod_waits_when_the_capacity_is_used_up(scenario, driver, node):
    device, *_ = driver.shareable_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("capacity/two-pods.yaml", **wanted)
    left, _ = scenario.pods("left", "right").should_run()
    scenario.apply("capacity/one-more.yaml", **wanted)
    third = scenario.pod("third").should_be_unschedulable(because=messages.NO_DEVICE_FITS)

    left.delete().should_be_gone()

    assert third.should_run().seen_devices == {device}


@requirement(
    "CAP-004",
    "The allocation must record the requested amount as the capacity that the claim consumes.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source=KEP,
    features=("capacity", "identity"),
    gates=("DRAConsumableCapacity",),
    about=CLUSTER,
    mutants=("capacities-unasked",),
)
def test_the_allocation_records_the_consumed_capacity(scenario, driver, node):
    device, *_ = driver.shareable_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("capacity/one-pod.yaml", **wanted)
    scenario.pod("pod").should_be_scheduled()

    assert scenario.claim("some").consumed_capacity(driver.sharing.capacity) == [driver.sharing.half]


@requirement(
    "CAP-005",
    "A requested amount that lies between two amounts allowed by the device's request policy must be rounded up to the larger one.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source=POLICY,
    features=("capacity", "sharing-rounds", "identity"),
    gates=("DRAConsumableCapacity",),
    mutants=(
        "policies-missing",
        "sharing-missing",
    ),
)
def test_an_uneven_amount_is_rounded_up(scenario, driver, node):
    device, *_ = driver.shareable_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.uneven, "wanted": driver.identity(device)}
    scenario.apply("capacity/one-pod.yaml", **wanted)
    scenario.pod("pod").should_run()

    assert scenario.claim("some").consumed_capacity(driver.sharing.capacity) == [driver.sharing.rounded]


@requirement(
    "CAP-006",
    "A claim must not be allocated more capacity than the device's request policy allows for one claim, even if that much is free.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source=POLICY,
    features=("capacity", "sharing-limits", "identity"),
    gates=("DRAConsumableCapacity",),
    mutants=("policies-missing",),
)
def test_an_amount_above_the_limit_is_not_allocated(scenario, driver, node):
    device, *_ = driver.shareable_on(node)
    wanted = {"capacity": driver.sharing.capacity, "wanted": driver.identity(device)}
    scenario.apply("capacity/one-pod.yaml", **wanted, amount=driver.amount_above_limit(device))
    pod = scenario.pod("pod").should_be_unschedulable(because=messages.NO_DEVICE_FITS)
    assert pod.devices == NONE

    scenario.apply("capacity/one-more.yaml", **wanted, amount=driver.sharing.half)
    assert scenario.pod("third").should_run().seen_devices == {device}


@requirement(
    "CAP-007",
    "A claim without a requested amount must get the default of the device's request policy, or the whole "
    "capacity if there is no default. Its pod must see the device.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source=POLICY,
    features=("capacity", "identity"),
    gates=("DRAConsumableCapacity",),
    mutants=(
        "no-env",
        "sharing-missing",
    ),
)
def test_a_request_without_an_amount_gets_the_default(scenario, driver, node):
    device, *_ = driver.shareable_on(node)
    scenario.apply("capacity/no-amount.yaml", wanted=driver.identity(device))
    pod = scenario.pod("pod").should_run()

    assert scenario.claim("some").consumed_capacity(driver.sharing.capacity) == [driver.default_share(device)]
    assert pod.seen_devices == {device}


@requirement(
    "CAP-008",
    "One claim must be able to get two shares of one device for two requests, and its pod must see the device.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source=KEP,
    features=("capacity", "identity"),
    gates=("DRAConsumableCapacity",),
    mutants=(
        "sharing-missing",
        "no-env",
    ),
)
def test_one_claim_has_two_shares(scenario, driver, node):
    device, *_ = driver.shareable_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("capacity/two-shares-of-one-claim.yaml", **wanted)
    pod = scenario.pod("pod").should_run()

    assert pod.seen_devices == {device}
    assert len(scenario.claim("both").share_ids) == 2


@requirement(
    "CAP-009",
    "Shares under a distinctAttribute constraint must come from different devices, and their pod must see both.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source="API reference: ResourceClaim v1 resource.k8s.io, DeviceConstraint.distinctAttribute",
    features=("capacity", "identity"),
    gates=("DRAConsumableCapacity",),
    mutants=(
        "first-device-only",
        "no-env",
    ),
    covers=("G3",),
)
def test_two_shares_of_distinct_devices(scenario, driver, node):
    unique = driver.identity(max(driver.shareable_on(node, at_least=2))).full_name
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "unique_attribute": unique}
    scenario.apply("capacity/distinct.yaml", **wanted)
    pod, claim = scenario.pod("pod").should_run(), scenario.claim("both")

    assert pod.seen_devices == pod.devices
    assert claim.devices_of("left") & claim.devices_of("right") == NONE


@requirement(
    "CAP-010",
    "When one pod releases its share of a device, another pod with a share must still see the device in a restarted container.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source=KEP,
    features=("capacity", "identity"),
    gates=("DRAConsumableCapacity",),
    mutants=(
        "unprepare-forgets-the-device",
        "cdi-file-is-lost",
    ),
)
def test_deleting_one_pod_does_not_affect_the_other_share(scenario, driver, node):
    device, *_ = driver.shareable_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("capacity/two-pods.yaml", **wanted)
    left, right = scenario.pods("left", "right").should_run()

    left.delete().should_be_gone()

    assert right.container("workload").restart().seen_devices == {device}


@requirement(
    "CAP-011",
    "When a driver reports the status of a shared device, it must use the shareID from the allocation of the claim.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source="API reference: ResourceClaim v1 resource.k8s.io, AllocatedDeviceStatus.shareID",
    features=("capacity", "device-status", "identity"),
    gates=("DRAConsumableCapacity", "DRAResourceClaimDeviceStatus"),
    mutants=(
        "status-never-written",
        "sharing-missing",
    ),
)
def test_the_device_status_names_the_share(scenario, driver, node):
    device, *_ = driver.shareable_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("capacity/one-pod.yaml", **wanted)
    scenario.pod("pod").should_run()
    claim = scenario.claim("some").should_have_device_status()

    assert claim.share_ids_with_status == claim.share_ids
    assert claim.share_ids


@requirement(
    "CAP-021",
    "The driver should return the shareID of every allocated share when it prepares a claim, so that PodResources List reports it.",
    level=SHOULD,
    tier=E2E,
    only_user_of="capacity",
    needs=(Capability.DRIVER_SOCKET,),
    source="k8s.io/kubelet: pkg/apis/podresources/v1/api.proto, ClaimResource.share_id",
    features=("capacity", "identity"),
    gates=("DRAConsumableCapacity", "KubeletPodResourcesDynamicResources"),
    kubernetes="1.36",
    covers=("N38", "G22"),
    mutants=("answer-without-shares", "sharing-missing"),
)
def test_pod_resources_name_each_share(scenario, kubelets, driver, node):
    device, *_ = driver.shareable_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("capacity/two-shares-of-one-claim.yaml", **wanted)
    pod = scenario.pod("pod").should_run()
    share_ids = scenario.claim("both").share_ids

    assert kubelets.list_shares(pod) == share_ids
    assert len(share_ids) == 2
