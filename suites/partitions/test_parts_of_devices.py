"""Partitionable devices: a device is used whole or in partitions, within the counters that they share."""

import pytest

from testbed.conformance import E2E, MUST, NONE, SHOULD, messages, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section Partitionable devices"
HELPER = "k8s.io/dynamic-resource-allocation: kubeletplugin/draplugin.go, interface DRAPlugin"
KEP = "KEP-4815, DRA partitionable devices"


@requirement(
    "PART-001",
    "A pod must be able to get a partition of a device, and must see that partition.",
    level=MUST,
    tier=E2E,
    only_user_of="partitions",
    source=DOCS,
    features=("partitions", "identity"),
    gates=("DRAPartitionableDevices",),
    mutants=(
        "no-env",
        "share-one-device",
    ),
)
def test_a_pod_gets_a_part(scenario, driver, node):
    part, _ = driver.partitionable_on(node).compatible_parts
    scenario.apply("partitions/one-part.yaml", wanted=driver.identity(part))

    assert scenario.pod("pod").should_run().seen_devices == {part}


@requirement(
    "PART-002",
    "Two pods must be able to use two partitions of one device at the same time, and each must see only its own.",
    level=MUST,
    tier=E2E,
    only_user_of="partitions",
    source=DOCS,
    features=("partitions", "identity"),
    gates=("DRAPartitionableDevices",),
    mutants=(
        "no-env",
        "share-one-device",
    ),
)
def test_two_pods_use_parts_of_one_device(scenario, driver, node):
    one, other = driver.partitionable_on(node).compatible_parts
    scenario.apply("partitions/two-pods.yaml", left=driver.identity(one), right=driver.identity(other))
    left, right = scenario.pods("left", "right").should_run()

    assert left.seen_devices == {one}
    assert right.seen_devices == {other}


@requirement(
    "PART-003",
    "While a partition is in use, the whole device must not be allocated. "
    "Once the partition is released, a waiting pod must get and see the whole device.",
    level=MUST,
    tier=E2E,
    only_user_of="partitions",
    source=DOCS,
    features=("partitions", "identity"),
    gates=("DRAPartitionableDevices",),
    mutants=(
        "counters-missing",
        "unprepare-fails",
        "no-env",
    ),
    covers=("PD1",),
)
def test_a_part_excludes_the_whole(scenario, driver, node):
    partitionable = driver.partitionable_on(node)
    scenario.apply("partitions/first.yaml", wanted=driver.identity(partitionable.compatible_parts[0]))
    first = scenario.pod("first").should_run()
    scenario.apply("partitions/second.yaml", wanted=driver.identity(partitionable.whole))
    second = scenario.pod("second").should_be_unschedulable(because=messages.NO_DEVICE_FITS)

    first.delete().should_be_gone()

    assert second.should_run().seen_devices == {partitionable.whole}


@requirement(
    "PART-004",
    "While a whole device is in use, its partitions must not be allocated. "
    "Once the device is released, a waiting pod must get and see its partition.",
    level=MUST,
    tier=E2E,
    only_user_of="partitions",
    source=DOCS,
    features=("partitions", "identity"),
    gates=("DRAPartitionableDevices",),
    mutants=(
        "counters-missing",
        "unprepare-fails",
        "no-env",
    ),
)
def test_the_whole_excludes_parts(scenario, driver, node):
    partitionable = driver.partitionable_on(node)
    scenario.apply("partitions/first.yaml", wanted=driver.identity(partitionable.whole))
    first = scenario.pod("first").should_run()
    scenario.apply("partitions/second.yaml", wanted=driver.identity(partitionable.compatible_parts[0]))
    second = scenario.pod("second").should_be_unschedulable(because=messages.NO_DEVICE_FITS)

    first.delete().should_be_gone()

    assert second.should_run().seen_devices == {partitionable.compatible_parts[0]}


@requirement(
    "PART-005",
    "Partitions that together need more of a shared counter than there is must not be allocated at the same time.",
    level=MUST,
    tier=E2E,
    only_user_of="partitions",
    source=KEP,
    features=("partitions", "identity"),
    gates=("DRAPartitionableDevices",),
    mutants=("counters-missing", "parts-offered-twice"),
)
def test_parts_that_exclude_each_other(scenario, driver, node):
    one, other = driver.partitionable_on(node).conflicting_parts
    scenario.apply("partitions/first.yaml", wanted=driver.identity(one))
    first = scenario.pod("first").should_run()
    scenario.apply("partitions/second.yaml", wanted=driver.identity(other))
    second = scenario.pod("second").should_be_unschedulable(because=messages.NO_DEVICE_FITS)

    assert first.should_stay_running().devices == {one}
    assert second.devices == NONE
    first.delete().should_be_gone()
    assert second.should_run().seen_devices == {other}


@requirement(
    "PART-006",
    "One claim must be able to get two partitions of a device for two requests, and its pod must see both.",
    level=MUST,
    tier=E2E,
    only_user_of="partitions",
    source=DOCS,
    features=("partitions", "identity"),
    gates=("DRAPartitionableDevices",),
    mutants=(
        "first-device-only",
        "no-env",
    ),
)
def test_one_claim_has_two_parts(scenario, driver, node):
    one, other = driver.partitionable_on(node).compatible_parts
    scenario.apply("partitions/two-parts-of-one-claim.yaml", left=driver.identity(one), right=driver.identity(other))
    pod, claim = scenario.pod("pod").should_run(), scenario.claim("both")

    assert (claim.devices_of("left"), claim.devices_of("right")) == ({one}, {other})
    assert pod.seen_devices == {one, other}


@requirement(
    "PART-007",
    "A claim for a whole device or else a partition must get a partition while another partition is in use, and its pod must see it.",
    level=MUST,
    tier=E2E,
    only_user_of="partitions",
    source=DOCS,
    features=("partitions", "identity"),
    gates=("DRAPartitionableDevices", "DRAPrioritizedList"),
    mutants=(
        "counters-missing",
        "no-env",
    ),
)
def test_a_part_is_the_alternative_to_the_whole_device(scenario, driver, node):
    partitionable = driver.partitionable_on(node)
    one, other = partitionable.compatible_parts
    scenario.apply("partitions/first.yaml", wanted=driver.identity(one))
    scenario.pod("first").should_run()

    choices = {"whole": driver.identity(partitionable.whole), "part": driver.identity(other)}
    scenario.apply("partitions/whole-or-part.yaml", **choices)

    assert scenario.pod("pod").should_run().seen_devices == {other}


@requirement(
    "PART-008",
    "While a whole device is prepared for a claim, the driver should refuse to prepare its partitions for other "
    "claims, and vice versa. The first pod should keep its device.",
    level=SHOULD,
    tier=E2E,
    exclusive=True,  # while a device is allocated twice, the scheduler may give it to other claims
    source=HELPER,
    features=("partitions", "identity"),
    gates=("DRAPartitionableDevices",),
    covers=("W19", "G26"),
    mutants=("forget-what-parts-share", "refuses-once"),
    given=("alone",),
    counts=(1,),
)
@pytest.mark.parametrize("owned", ["whole", "part"])
def test_a_whole_and_its_part_are_never_prepared_together(scenario, node, driver, owned):
    partitionable = driver.partitionable_on(node)
    whole, part = partitionable.whole, partitionable.compatible_parts[0]
    mine, wanted = (whole, part) if owned == "whole" else (part, whole)
    scenario.apply("partitions/first.yaml", wanted=driver.identity(mine))
    owner = scenario.pod("first").should_run()

    scenario.apply("partitions/allocated.yaml", node=node)
    scenario.apply_status("basic/allocation.yaml", claim="other", node=node, pool=wanted.pool, name=wanted.name)
    scenario.claim("other").should_be_reserved_for("other")
    other = scenario.pod("other").trigger_sync()
    other.should_fail_to_prepare("other").should_fail_to_prepare_again("other").should_stay_pending()

    assert owner.container("workload").restart().seen_devices == {mine}
