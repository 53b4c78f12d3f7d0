"""NodePrepareResources, as pods show it: refused devices, retries and concurrent pods."""

from testbed.conformance import E2E, MUST, SHOULD, requirement

HELPER = "k8s.io/dynamic-resource-allocation: kubeletplugin/draplugin.go, interface DRAPlugin"
DRA = "k8s.io/kubelet: pkg/apis/dra/v1/api.proto, NodePrepareResources"


@requirement(
    "PREP-001",
    "The driver should refuse to prepare a device that is prepared for another claim, and the pod of that claim should keep the device.",
    level=SHOULD,
    tier=E2E,
    exclusive=True,  # when one of two claims with the same device ends, the scheduler takes the device for free
    source=HELPER,
    given=("unshared", "alone"),
    covers=("W19", "G26"),
    mutants=("prepares-busy-devices", "forget-the-checkpoint", "refuses-once"),
    counts=(1,),
)
def test_a_device_that_is_in_use_is_refused(scenario, node):
    scenario.apply("prepare/owner.yaml", node=node)
    owner = scenario.pod("owner").should_run()
    (device,) = owner.devices

    scenario.apply("basic/pod-and-claim.yaml", claim="other", node=node)
    scenario.apply_status("basic/allocation.yaml", claim="other", node=node, pool=device.pool, name=device.name)
    scenario.claim("other").should_be_reserved_for("other")
    other = scenario.pod("other").trigger_sync()
    other.should_fail_to_prepare("other").should_fail_to_prepare_again("other").should_stay_pending()

    assert owner.container("workload").restart().seen_devices == {device}


@requirement(
    "PREP-002",
    "Once a device is released, the driver should prepare the claim for it that it refused "
    "before, so that the pod runs and sees the device.",
    level=SHOULD,
    tier=E2E,
    exclusive=True,  # when one of two claims with the same device ends, the scheduler takes the device for free
    source=HELPER,
    given=("unshared", "alone"),
    covers=("P2", "N7", "G26"),
    mutants=("once-refused-always-refused", "never-give-back"),
    counts=(1,),
)
def test_a_claim_that_was_refused_is_prepared_later(scenario, node):
    scenario.apply("prepare/owner.yaml", node=node)
    owner = scenario.pod("owner").should_run()
    (device,) = owner.devices
    scenario.apply("basic/pod-and-claim.yaml", claim="other", node=node)
    scenario.apply_status("basic/allocation.yaml", claim="other", node=node, pool=device.pool, name=device.name)
    scenario.claim("other").should_be_reserved_for("other")
    other = scenario.pod("other").trigger_sync()
    other.should_fail_to_prepare("other")

    owner.delete().should_be_gone()
    other.trigger_sync().should_run()

    assert other.seen_devices == {device}


@requirement(
    "PREP-003",
    "The driver must refuse each attempt to prepare a device that it does not have, and the pod must not run.",
    level=MUST,
    tier=E2E,
    source=DRA,
    given=("local", "alone", "one-class"),
    covers=("W18", "G11"),
    mutants=("make-up-devices", "refuses-once"),
    counts=(1,),
)
def test_an_unknown_device_is_refused(scenario, node, driver):
    pool = min(driver.devices_on(node)).pool
    scenario.apply("basic/pod-and-claim.yaml", claim="other", node=node)
    scenario.apply_status("basic/allocation.yaml", claim="other", node=node, pool=pool, name="no-such-device")
    scenario.claim("other").should_be_reserved_for("other")
    other = scenario.pod("other").trigger_sync()
    other.should_fail_to_prepare("other").should_fail_to_prepare_again("other").should_stay_pending()

    scenario.apply("prepare/owner.yaml", node=node)
    owner = scenario.pod("owner").should_run()

    assert owner.seen_devices == owner.devices


@requirement(
    "PREP-004",
    "The driver must refuse each attempt to prepare a device of a pool that it does not have, "
    "even if another pool has a device of that name, and the pod must not run.",
    level=MUST,
    tier=E2E,
    exclusive=True,  # a driver that ignores the pool could refuse a device that another test uses, and pass
    source=DRA,
    given=("local", "alone", "one-class"),
    covers=("W18", "G11"),
    mutants=("know-devices-by-name", "make-up-devices", "refuses-once"),
    counts=(1,),
)
def test_a_device_of_an_unknown_pool_is_refused(scenario, node, driver):
    name = min(driver.devices_on(node)).name
    scenario.apply("basic/pod-and-claim.yaml", claim="other", node=node)
    scenario.apply_status("basic/allocation.yaml", claim="other", node=node, pool="no-such-pool", name=name)
    scenario.claim("other").should_be_reserved_for("other")
    other = scenario.pod("other").trigger_sync()
    other.should_fail_to_prepare("other").should_fail_to_prepare_again("other").should_stay_pending()

    scenario.apply("prepare/owner.yaml", node=node)
    owner = scenario.pod("owner").should_run()

    assert owner.seen_devices == owner.devices


@requirement(
    "PREP-005",
    "When a pod ends after one of its claims could not be prepared, the devices of its other claims must be usable by other pods.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DRA,
    given=("local", "unshared", "alone", "one-class"),
    covers=("W16",),
    mutants=("never-give-back",),
    counts=(1,),
)
def test_a_refused_claim_does_not_keep_the_device_of_another(scenario, node, driver):
    device = min(driver.devices_on(node))
    good, bad = {"claim": "good", "name": device.name}, {"claim": "bad", "name": "no-such-device"}
    scenario.apply("prepare/good-and-bad.yaml", node=node)
    scenario.apply_status("basic/allocation.yaml", node=node, pool=device.pool, **good)
    scenario.apply_status("basic/allocation.yaml", node=node, pool=device.pool, **bad)
    scenario.claim("good").should_be_reserved_for("both")
    scenario.claim("bad").should_be_reserved_for("both")
    both = scenario.pod("both").trigger_sync()
    both.should_fail_to_prepare("bad").delete().should_be_gone()

    scenario.apply("basic/pod-and-claim.yaml", claim="other", node=node)
    scenario.apply_status("basic/allocation.yaml", claim="other", node=node, pool=device.pool, name=device.name)
    scenario.claim("other").should_be_reserved_for("other")

    assert scenario.pod("other").trigger_sync().should_run().seen_devices == {device}


@requirement(
    "PREP-006",
    "Pods that start at the same time, each with a claim of its own, must each get and see a different device.",
    level=MUST,
    tier=E2E,
    devices=5,
    spread=True,
    source=DRA,
    given=("unshared",),
    covers=("W22",),
    mutants=("share-one-device", "no-env"),
)
def test_pods_start_at_the_same_time(scenario, driver):
    scenario.apply("prepare/crowd.yaml")
    pods = scenario.pods_of("crowd", 5).should_run()

    assert pods.seen_devices == pods.devices
    assert len(pods.all_devices) == driver.devices_for(claims=5)


@requirement(
    "PREP-007",
    "The driver must refuse each attempt to prepare a claim if it does not have one of the claim's devices. "
    "The pod must not run with the others.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DRA,
    given=("local", "unshared", "alone", "one-class"),
    covers=("W18",),
    mutants=("leaves-out-unknown-devices", "make-up-devices"),
    counts=(1, 2),
)
def test_one_of_two_devices_is_unknown(scenario, node, driver):
    device = min(driver.devices_on(node))
    names = {"first": device.name, "second": "no-such-device"}
    scenario.apply("prepare/two-devices.yaml", node=node)
    scenario.apply_status("prepare/allocation-of-two.yaml", node=node, pool=device.pool, **names)
    scenario.claim("two").should_be_reserved_for("two")
    two = scenario.pod("two").trigger_sync()
    two.should_fail_to_prepare("two").should_fail_to_prepare_again("two").should_stay_pending()

    scenario.apply("basic/pod-and-claim.yaml", claim="control", node=node)
    scenario.apply_status("basic/allocation.yaml", claim="control", node=node, pool=device.pool, name=device.name)
    scenario.claim("control").should_be_reserved_for("control")

    assert scenario.pod("control").trigger_sync().should_run().seen_devices == {device}


@requirement(
    "PREP-008",
    "When a claim is allocated again with another device, its next pod must see that device and not the earlier one.",
    level=MUST,
    tier=E2E,
    devices=2,
    exclusive=True,
    source=DRA,
    given=("local", "unshared", "alone"),
    mutants=("remembers-the-first-allocation",),
    counts=(1,),
)
def test_a_claim_is_allocated_again_with_another_device(scenario, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    before, claim = scenario.pod("pod").should_run(), scenario.claim("my-device")
    (device,) = claim.devices
    before.delete().should_be_gone()
    claim.should_be_deallocated()
    scenario.apply("basic/pod-and-claim.yaml", claim="other", node=node)
    scenario.apply_status("basic/allocation.yaml", claim="other", node=node, pool=device.pool, name=device.name)
    scenario.claim("other").should_be_reserved_for("other")
    scenario.pod("other").trigger_sync().should_run()

    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()

    assert pod.seen_devices == pod.devices != {device}
