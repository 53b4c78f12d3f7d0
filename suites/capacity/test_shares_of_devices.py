"""Consumable capacity: several claims have shares of one device at the same time, as long as its capacity lasts."""

from testbed.conformance import E2E, MUST, SHOULD, Capability, requirement

DOCS = "kubernetes.io: Dynamic Resource Allocation, Consumable capacity"
KEP = "KEP-5075, DRA consumable capacity"
POLICY = "API reference: ResourceSlice v1 resource.k8s.io, CapacityRequestPolicy"


@requirement(
    "CAP-001",
    "Two pods have shares of one device at the same time, and both see it.",
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
    device, *_ = driver.shared_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("capacity/two-pods.yaml", **wanted)
    left, right = scenario.pods("left", "right").should_run()

    assert left.seen_devices == right.seen_devices == {device}


@requirement(
    "CAP-002",
    "Each share has an id of its own in the allocation of its claim.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source=KEP,
    features=("capacity", "identity"),
    gates=("DRAConsumableCapacity",),
    mutants=("sharing-missing", "share-ids-alike"),
)
def test_each_share_has_an_id(scenario, driver, node):
    device, *_ = driver.shared_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("capacity/two-pods.yaml", **wanted)
    scenario.pods("left", "right").should_run()
    left, right = scenario.claim("left").shares, scenario.claim("right").shares

    assert len(left) == len(right) == 1
    assert left != right


@requirement(
    "CAP-003",
    "When the capacity of a device is used up, one more pod waits; it gets the share that another one gives back.",
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
def test_the_capacity_is_used_up(scenario, driver, node):
    device, *_ = driver.shared_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("capacity/two-pods.yaml", **wanted)
    left, _ = scenario.pods("left", "right").should_run()
    scenario.apply("capacity/one-more.yaml", **wanted)
    third = scenario.pod("third").should_be_unschedulable(because="cannot allocate all claims")

    left.delete().should_be_gone()

    assert third.should_run().seen_devices == {device}


@requirement(
    "CAP-004",
    "The allocation says how much of the capacity the claim consumes: as much as it asked for.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source=KEP,
    features=("capacity", "identity"),
    gates=("DRAConsumableCapacity",),
    mutants=("sharing-missing", "capacities-unasked"),
)
def test_the_allocation_says_how_much_is_consumed(scenario, driver, node):
    device, *_ = driver.shared_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("capacity/one-pod.yaml", **wanted)
    scenario.pod("pod").should_run()

    assert scenario.claim("some").consumed(driver.sharing.capacity) == [driver.sharing.half]


@requirement(
    "CAP-005",
    "An amount that the device does not deal out is rounded up to one that it does.",
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
    device, *_ = driver.shared_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.uneven, "wanted": driver.identity(device)}
    scenario.apply("capacity/one-pod.yaml", **wanted)
    scenario.pod("pod").should_run()

    assert scenario.claim("some").consumed(driver.sharing.capacity) == [driver.sharing.rounded]


@requirement(
    "CAP-006",
    "More than the device gives to one claim cannot be had, although it has as much.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source=POLICY,
    features=("capacity", "sharing-limits", "identity"),
    gates=("DRAConsumableCapacity",),
    mutants=("policies-missing",),
)
def test_more_than_one_claim_may_have(scenario, driver, node):
    device, *_ = driver.shared_on(node)
    wanted = {
        "capacity": driver.sharing.capacity,
        "amount": driver.too_much_of(device),
        "wanted": driver.identity(device),
    }
    scenario.apply("capacity/one-pod.yaml", **wanted)
    pod = scenario.pod("pod").should_be_unschedulable(because="cannot allocate all claims")

    assert pod.devices == frozenset()


@requirement(
    "CAP-007",
    "A claim that names no amount gets what the device gives by default, or all of it where it has no default.",
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
def test_no_amount(scenario, driver, node):
    device, *_ = driver.shared_on(node)
    scenario.apply("capacity/no-amount.yaml", wanted=driver.identity(device))
    pod = scenario.pod("pod").should_run()

    assert scenario.claim("some").consumed(driver.sharing.capacity) == [driver.default_share(device)]
    assert pod.seen_devices == {device}


@requirement(
    "CAP-008",
    "One claim has two shares of one device for two requests, and each container sees the device.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source=KEP,
    features=("capacity", "identity"),
    gates=("DRAConsumableCapacity",),
    mutants=(
        "first-device-only",
        "sharing-missing",
        "no-env",
    ),
)
def test_one_claim_has_two_shares(scenario, driver, node):
    device, *_ = driver.shared_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("basic/two-shares-of-one-claim.yaml", **wanted)
    left, right = scenario.pod("pod").should_run().containers("left", "right")

    assert left.seen_devices == right.seen_devices == {device}
    assert len(scenario.claim("both").shares) == 2


@requirement(
    "CAP-009",
    "Under a distinctAttribute constraint shares are of devices with different values of that attribute.",
    level=MUST,
    tier=E2E,
    only_user_of="capacity",
    source="API reference: ResourceClaim v1 resource.k8s.io, DeviceConstraint.distinctAttribute",
    features=("capacity", "identity", "per-container"),
    gates=("DRAConsumableCapacity",),
    mutants=(
        "first-device-only",
        "forget-request-names",
        "no-env",
    ),
    covers=("G3",),
)
def test_shares_of_distinct_devices(scenario, driver, node):
    unique = driver.identity(max(driver.shared_on(node, at_least=2))).full_name
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "unique_attribute": unique}
    scenario.apply("capacity/distinct.yaml", **wanted)
    left, right = scenario.pod("pod").should_run().containers("left", "right")

    assert left.seen_devices == left.devices
    assert right.seen_devices == right.devices
    assert left.devices & right.devices == set()


@requirement(
    "CAP-010",
    "When one pod gives its share back, the others keep theirs, also in containers that are started again.",
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
def test_the_end_of_one_share(scenario, driver, node):
    device, *_ = driver.shared_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("capacity/two-pods.yaml", **wanted)
    left, right = scenario.pods("left", "right").should_run()

    left.delete().should_be_gone()

    assert right.container("workload").restart().seen_devices == {device}


@requirement(
    "CAP-011",
    "What a driver says of a device in a claim, it says of the share that the claim has.",
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
def test_the_status_speaks_of_the_share(scenario, driver, node):
    device, *_ = driver.shared_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("capacity/one-pod.yaml", **wanted)
    scenario.pod("pod").should_run()
    claim = scenario.claim("some").should_have_a_status()

    assert claim.shares_with_status == claim.shares
    assert claim.shares


@requirement(
    "CAP-021",
    "PodResources List names the id of every share that a claim has of a device, as it was allocated.",
    level=SHOULD,
    tier=E2E,
    only_user_of="capacity",
    needs=(Capability.DRIVER_SOCKET,),
    source="k8s.io/kubelet, podresources/v1/api.proto, ClaimResource.share_id",
    features=("capacity", "identity"),
    gates=("DRAConsumableCapacity", "KubeletPodResourcesDynamicResources"),
    kubernetes="1.36",
    covers=("N38", "G22"),
    mutants=("answer-without-shares", "sharing-missing"),
)
def test_pod_resources_name_each_share(scenario, kubelets, driver, node):
    device, *_ = driver.shared_on(node)
    wanted = {"capacity": driver.sharing.capacity, "amount": driver.sharing.half, "wanted": driver.identity(device)}
    scenario.apply("basic/two-shares-of-one-claim.yaml", **wanted)
    pod = scenario.pod("pod").should_run()
    shares = scenario.claim("both").shares

    assert kubelets.shares_listed(pod) == shares
    assert len(shares) == 2
