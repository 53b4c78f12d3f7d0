"""Pods that are deleted by force, while their kubelet still has to stop them and unprepare their claims."""

from testbed.conformance import DISRUPTIVE, MUST, requirement

FORCED = (
    "Kubernetes documentation: Pod Lifecycle, section Forced Pod termination; KEP-4381, section NodeUnprepareResources"
)


@requirement(
    "LIFE-030",
    "When a pod is deleted by force, its claim must be deallocated, and the next pod must get and see its device.",
    level=MUST,
    tier=DISRUPTIVE,
    exclusive=True,
    source=FORCED,
    features=("identity",),
    given=("local", "one-class"),
    mutants=("never-give-back",),
    counts=(1,),
)
def test_a_device_is_free_after_a_forced_deletion(scenario, driver, node):
    device = max(driver.devices_on(node))
    wanted = driver.identity(device)
    scenario.apply("basic/chosen-device.yaml", name="first", wanted=wanted)
    scenario.pod("first").should_run().delete(by_force=True)

    scenario.claim("first").should_be_deallocated()
    scenario.apply("basic/chosen-device.yaml", name="next", wanted=wanted)

    assert scenario.pod("next").should_recover().seen_devices == {device}


@requirement(
    "LIFE-031",
    "When a pod and a claim are created again under the names of a forcibly deleted pod and its "
    "claim, the pod must see the device of the new claim.",
    level=MUST,
    tier=DISRUPTIVE,
    source=FORCED,
    mutants=("know-claims-by-name",),
    covers=("B3",),
)
def test_a_new_pod_and_claim_have_the_names_of_the_deleted_ones(scenario, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod, claim = scenario.pod("pod").should_run(), scenario.claim("my-device")

    pod.delete(by_force=True)
    claim.delete()
    claim.should_be_gone()
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod.should_recover()

    assert pod.seen_devices == claim.devices
