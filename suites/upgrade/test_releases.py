"""Updates from the previous release of the driver to this one, and back, while a pod uses a device."""

from testbed.conformance import DISRUPTIVE, MUST, SHOULD, Capability, requirement

UPDATE = (
    "Kubernetes documentation: Good practices for Dynamic Resource Allocation as a Cluster Admin, "
    "section DRA driver deployment and maintenance"
)
NEEDED = (Capability.CHANGE_DRIVER,)


@requirement(
    "UPGRADE-006",
    "A pod whose claim the previous release prepared must keep running with its device while the driver is updated to this release, "
    "and a container restarted afterwards must see the device.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=NEEDED,
    source=UPDATE,
    features=("previous-release",),
    mutants=("forgets-the-previous-release",),
)
def test_a_pod_runs_while_its_driver_is_updated_from_the_previous_release(scenario, releases, node):
    releases.install_previous()
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()

    releases.upgrade()
    container = pod.should_stay_running().container("workload")

    assert container.restarts == 0
    assert container.restart().seen_devices == pod.devices


@requirement(
    "UPGRADE-007",
    "This release must unprepare claims that the previous release prepared. "
    "The pod must end, and the next pod must get and see the device.",
    level=MUST,
    tier=DISRUPTIVE,
    exclusive=True,
    needs=NEEDED,
    source=UPDATE,
    features=("identity", "previous-release"),
    given=("local",),
    mutants=("refuses-claims-of-the-previous-release",),
    counts=(1,),
)
def test_a_claim_prepared_by_the_previous_release_is_unprepared_by_this_one(scenario, driver, releases, node):
    releases.install_previous()
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()
    device = max(pod.devices)

    releases.upgrade()
    pod.delete().should_be_gone()
    scenario.apply("basic/chosen-device.yaml", name="next", wanted=driver.identity(device))

    assert scenario.pod("next").should_run().seen_devices == {device}


@requirement(
    "UPGRADE-008",
    "After a downgrade to the previous release, a pod whose claim this release prepared should still run with its device. "
    "The pod should end, and the next pod should get and see the device.",
    level=SHOULD,
    tier=DISRUPTIVE,
    exclusive=True,
    needs=NEEDED,
    source=UPDATE,
    features=("identity", "previous-release"),
    given=("local", "one-class"),
    mutants=("migrates-its-checkpoint-for-good",),
    counts=(1,),
)
def test_a_claim_prepared_by_this_release_survives_a_downgrade(scenario, driver, releases, node):
    device = max(driver.devices_on(node))
    wanted = driver.identity(device)
    scenario.apply("basic/chosen-device.yaml", name="first", wanted=wanted)
    pod = scenario.pod("first").should_run()

    releases.downgrade()
    assert pod.should_stay_running().container("workload").restart().seen_devices == {device}

    pod.delete().should_be_gone()
    scenario.apply("basic/chosen-device.yaml", name="next", wanted=wanted)

    assert scenario.pod("next").should_run().seen_devices == {device}
