"""Pods are deleted by force: gone from the API at once, while their kubelet has still to end them and to unprepare their claims."""

from testbed.conformance import DISRUPTIVE, MUST, requirement

FORCED = "kubernetes.io: Pod Lifecycle, forced termination; KEP-4381, NodeUnprepareResources"


@requirement(
    "LIFE-030",
    "The device of a pod that was deleted by force is given back: the next pod runs with it.",
    level=MUST,
    tier=DISRUPTIVE,
    exclusive=True,
    source=FORCED,
    features=("identity",),
    given=("local",),
    mutants=("never-give-back",),
)
def test_a_device_is_free_again_after_a_forced_deletion(scenario, driver, node):
    device = max(driver.devices_on(node))
    wanted = driver.identity(device)
    scenario.apply("basic/chosen-device.yaml", name="first", wanted=wanted)
    scenario.pod("first").should_run().delete_by_force()

    scenario.claim("first").should_be_deallocated()
    scenario.apply("basic/chosen-device.yaml", name="next", wanted=wanted)

    assert scenario.pod("next").should_recover().seen_devices == {device}


@requirement(
    "LIFE-031",
    "After a forced deletion, a pod and a claim may have the names of those before them; the pod runs with the device of its own claim.",
    level=MUST,
    tier=DISRUPTIVE,
    source=FORCED,
    mutants=("know-claims-by-name",),
    covers=("B3",),
)
def test_a_successor_has_the_names_of_its_predecessor(scenario, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod, claim = scenario.pod("pod").should_run(), scenario.claim("my-device")

    pod.delete_by_force()
    claim.delete()
    claim.should_be_gone()
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod.should_recover()

    assert pod.seen_devices == claim.devices
