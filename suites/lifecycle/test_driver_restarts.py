"""The driver of a node ends and comes back, or the whole node does: what runs goes on, and what was asked meanwhile is done."""

from testbed.conformance import DISRUPTIVE, MUST, Capability, requirement

CALLS = "KEP-4381, communication between kubelet and resource kubelet plugin"
RESTART = (Capability.CHANGE_DRIVER,)


@requirement(
    "LIFE-020",
    "A pod keeps running with its device while the driver is restarted, also in a container that is started again afterwards.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=RESTART,
    source=CALLS,
    mutants=("starts-clean",),
    covers=("N2", "G15"),
)
def test_a_pod_runs_while_its_driver_is_restarted(scenario, daemon, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()

    daemon.restart(node)
    container = pod.should_stay_running().container("workload")

    assert container.restarts == 0
    assert container.restart().seen_devices == pod.devices


@requirement(
    "LIFE-021",
    "A pod that was given to a node while the driver was away is not started; it runs with its device when the driver is back.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=RESTART,
    source=CALLS,
    mutants=("leaves-its-lock-behind",),
    covers=("P8",),
)
def test_a_pod_waits_for_its_driver(scenario, daemon, node):
    daemon.leave(node)
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_be_told("FailedPrepareDynamicResources", "Failed to prepare dynamic resources")
    pod.should_stay_pending()
    daemon.come_back()
    pod.should_recover()

    assert pod.seen_devices == pod.devices


@requirement(
    "LIFE-022",
    "A pod that was deleted while the driver was away ends when the driver is back, and the next pod gets its device.",
    level=MUST,
    tier=DISRUPTIVE,
    exclusive=True,
    needs=RESTART,
    source="KEP-4381, NodeUnprepareResources: a pod is not gone before its claims are unprepared",
    features=("identity",),
    given=("local",),
    mutants=("unprepares-only-its-own",),
    covers=("N8", "N15", "G12"),
)
def test_a_pod_is_deleted_while_its_driver_is_away(scenario, driver, daemon, node):
    device = max(driver.devices_on(node))
    wanted = driver.identity(device)
    scenario.apply("basic/chosen-device.yaml", name="first", wanted=wanted)
    pod = scenario.pod("first").should_run()

    daemon.leave(node)
    pod.delete().should_stay_ending()
    daemon.come_back()
    pod.should_be_gone()
    scenario.apply("basic/chosen-device.yaml", name="next", wanted=wanted)

    assert scenario.pod("next").should_recover().seen_devices == {device}


@requirement(
    "LIFE-023",
    "A node that was rebooted, and has lost what lay in /run, runs its pods again with the same devices.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=(Capability.REBOOT_NODE,),
    source="KEP-4381, NodePrepareResources: CDI files do not survive a reboot, so the call has to write them again",
    mutants=("trusts-its-checkpoint",),
    covers=("G13",),
)
def test_a_pod_runs_again_after_a_reboot(scenario, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()
    devices = pod.seen_devices

    node.reboot()
    pod.should_recover()

    assert pod.seen_devices == pod.devices == devices
