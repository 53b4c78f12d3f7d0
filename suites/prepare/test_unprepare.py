"""NodeUnprepareResources, as pods show it: devices can be prepared again when their pod has ended."""

from testbed.conformance import E2E, MUST, Capability, requirement

HELPER = "k8s.io/dynamic-resource-allocation: kubeletplugin/draplugin.go, interface DRAPlugin"
DRA = "k8s.io/kubelet: pkg/apis/dra/v1/api.proto, NodeUnprepareResources"


@requirement(
    "UNPREP-001",
    "When a pod has ended, the driver must be able to prepare its device for another claim at once.",
    level=MUST,
    tier=E2E,
    exclusive=True,  # when one of two claims with the same device ends, the scheduler takes the device for free
    source=DRA,
    given=("unshared", "alone"),
    covers=("W25",),
    mutants=("never-give-back", "unprepare-fails"),
    counts=(1,),
)
def test_a_device_is_free_when_its_pod_has_ended(scenario, node):
    scenario.apply("prepare/owner.yaml", node=node)
    owner = scenario.pod("owner").should_run()
    (device,) = owner.devices
    scenario.apply("prepare/claim.yaml", claim="other")
    scenario.apply_status("basic/allocation.yaml", claim="other", node=node, pool=device.pool, name=device.name)

    owner.delete().should_be_gone()

    scenario.apply("basic/pod-and-claim.yaml", claim="other", node=node)
    scenario.claim("other").should_be_reserved_for("other")

    assert scenario.pod("other").trigger_sync().should_run().seen_devices == {device}


@requirement(
    "UNPREP-002",
    "The claim of a pod that was deleted by force must be unprepared, and the driver must be able to prepare its device for another claim.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DRA,
    needs=(Capability.KUBELET_METRICS,),
    given=("unshared", "alone"),
    covers=("B2", "N11"),
    mutants=("never-give-back", "unprepare-fails"),
    counts=(1,),
)
def test_a_pod_is_deleted_by_force(scenario, node, kubelets):
    before = kubelets.claims_in_use(node)
    scenario.apply("prepare/owner.yaml", node=node)
    owner = scenario.pod("owner").should_run()
    (device,) = owner.devices
    scenario.apply("prepare/claim.yaml", claim="other")
    scenario.apply_status("basic/allocation.yaml", claim="other", node=node, pool=device.pool, name=device.name)

    owner.delete(by_force=True).should_be_gone()
    kubelets.should_have_claims_in_use(node, before)

    scenario.apply("basic/pod-and-claim.yaml", claim="other", node=node)
    scenario.claim("other").should_be_reserved_for("other")

    assert scenario.pod("other").trigger_sync().should_run().seen_devices == {device}


@requirement(
    "UNPREP-003",
    "The driver must unprepare a claim that no longer exists, so that the pod ends and the device can be prepared for another claim.",
    level=MUST,
    tier=E2E,
    exclusive=True,  # when one of two claims with the same device ends, the scheduler takes the device for free
    source=HELPER,
    given=("unshared", "alone"),
    covers=("W27", "N11"),
    mutants=("unprepare-needs-the-claim",),
    counts=(1,),
)
def test_a_claim_is_deleted_while_it_is_used(scenario, node):
    scenario.apply("prepare/owner.yaml", node=node)
    owner, claim = scenario.pod("owner").should_run(), scenario.claim("owned")
    (device,) = owner.devices
    scenario.apply("prepare/claim.yaml", claim="other")
    scenario.apply_status("basic/allocation.yaml", claim="other", node=node, pool=device.pool, name=device.name)

    claim.delete_despite_finalizers()
    claim.should_be_gone()
    owner.delete().should_be_gone()

    scenario.apply("basic/pod-and-claim.yaml", claim="other", node=node)
    scenario.claim("other").should_be_reserved_for("other")

    assert scenario.pod("other").trigger_sync().should_run().seen_devices == {device}


@requirement(
    "UNPREP-004",
    "A pod whose claim the driver refused to prepare must end when it is deleted, and the claim must not stay reserved for it.",
    level=MUST,
    tier=E2E,
    source=HELPER,
    given=("local", "alone", "one-class"),
    covers=("W26",),
    mutants=("unprepare-of-unknown-fails",),
    counts=(1,),
)
def test_a_claim_that_was_never_prepared_is_unprepared(scenario, node, driver):
    pool = min(driver.devices_on(node)).pool
    scenario.apply("basic/pod-and-claim.yaml", claim="other", node=node)
    scenario.apply_status("basic/allocation.yaml", claim="other", node=node, pool=pool, name="no-such-device")
    scenario.claim("other").should_be_reserved_for("other")
    other = scenario.pod("other").trigger_sync()
    other.should_fail_to_prepare("other")

    other.delete().should_be_gone()
    scenario.claim("other").should_be_reserved_for()

    scenario.apply("prepare/owner.yaml", node=node)
    owner = scenario.pod("owner").should_run()

    assert owner.seen_devices == owner.devices
