"""Restarts of the driver and reboots of its node."""

from testbed.conformance import DISRUPTIVE, MUST, SHOULD, Capability, requirement

CALLS = "KEP-4381, section Communication between kubelet and kubelet plugin"
WIPED = "kubelet: pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go, which deletes the ResourceSlices of a driver that stays away"
RESTART = (Capability.CHANGE_DRIVER,)


@requirement(
    "LIFE-043",
    "When the driver has restarted, it must be registered and its devices must be published as before.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=RESTART,
    given=("local", "one-class"),
    source=CALLS,
    mutants=("deletes-slices-after-a-restart",),
)
def test_a_restarted_driver_publishes_its_devices(scenario, driver, daemon, node):
    devices = driver.devices_on(node)

    daemon.restart(node)
    driver.should_publish(devices, node)
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_recover()

    assert pod.seen_devices == pod.devices


@requirement(
    "LIFE-020",
    "A pod must keep running with its device while the driver restarts, and a container restarted afterwards must see the device.",
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
    "A pod that is scheduled while the driver is stopped must not start. When the driver is back, the pod must run and see its device.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=RESTART,
    source=CALLS,
    mutants=("leaves-its-lock-behind",),
    covers=("P8",),
)
def test_a_pod_waits_for_its_driver(scenario, daemon, node):
    daemon.stop_on(node)
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_wait_for_its_driver()
    pod.should_stay_pending()
    daemon.start_again()
    pod.should_recover()

    assert pod.seen_devices == pod.devices


@requirement(
    "LIFE-022",
    "A pod that is deleted while the driver is stopped must end only when the driver is back, "
    "and the next pod must get and see the device.",
    level=MUST,
    tier=DISRUPTIVE,
    exclusive=True,
    needs=RESTART,
    source="KEP-4381, section Managing resources: claims are unprepared before their pod can be deleted",
    features=("identity",),
    given=("local", "one-class"),
    mutants=("unprepares-only-its-own",),
    covers=("N8", "N15", "G12"),
    counts=(1,),
)
def test_a_pod_is_deleted_while_its_driver_is_away(scenario, driver, daemon, node):
    device = max(driver.devices_on(node))
    wanted = driver.identity(device)
    scenario.apply("basic/chosen-device.yaml", name="first", wanted=wanted)
    pod = scenario.pod("first").should_run()

    daemon.stop_on(node)
    pod.delete().should_stay_terminating()
    daemon.start_again()
    pod.should_be_gone()
    scenario.apply("basic/chosen-device.yaml", name="next", wanted=wanted)

    assert scenario.pod("next").should_recover().seen_devices == {device}


@requirement(
    "LIFE-023",
    "After a reboot that clears /run, the pods of the node must run again and see the same devices.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=(Capability.REBOOT_NODE,),
    source="KEP-4381, section NodePrepareResource: the driver must ensure that the CDI files exist",
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


@requirement(
    "LIFE-024",
    "After a reboot of a node that has lost a device, the driver must publish the other devices, "
    "and a pod must run again with its own device.",
    level=MUST,
    tier=DISRUPTIVE,
    devices=2,
    exclusive=True,
    needs=(Capability.REBOOT_NODE,),
    source="KEP-4381, section NodePrepareResource: the driver must ensure that the CDI files exist",
    features=("live-control", "identity"),
    given=("local", "one-class"),
    mutants=("trusts-its-checkpoint", "lost-devices-shift-names"),
    counts=(1,),
)
def test_a_device_is_gone_after_a_reboot(scenario, driver, hardware, node):
    used, lost = max(driver.devices_on(node)), min(driver.devices_on(node))
    scenario.apply("basic/chosen-device.yaml", name="pod", wanted=driver.identity(used))
    pod, slices = scenario.pod("pod").should_run(), driver.slices_on(node)
    left = driver.devices_on(node) - {lost}

    hardware.unplug(lost)
    node.reboot()
    driver.should_replace_slices(slices, node)
    pod.should_recover()

    assert pod.seen_devices == {used}
    driver.should_publish(left, node)


@requirement(
    "LIFE-041",
    "When a driver stays away from a node, the kubelet must delete its ResourceSlices for that node. "
    "When the driver is back, it must publish its devices again.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=RESTART,
    given=("local", "one-class"),
    source=WIPED,
    mutants=("slices-outlive-their-driver", "publishes-only-the-first-time"),
    covers=("N25", "U4"),
)
def test_slices_are_deleted_when_their_driver_stays_away(scenario, driver, daemon, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()
    devices, slices = driver.devices_on(node), driver.slices_on(node)

    daemon.stop_on(node)
    driver.should_lose_slices(slices, node)
    daemon.start_again()
    driver.should_replace_slices(slices, node)

    assert driver.devices_on(node) == devices
    assert pod.should_stay_running().seen_devices == pod.devices


@requirement(
    "LIFE-042",
    "The driver should not remove or replace ResourceSlices when it restarts, and its devices should stay published all the time.",
    level=SHOULD,
    tier=DISRUPTIVE,
    needs=RESTART,
    source=WIPED,
    mutants=("publishes-from-scratch", "publishes-nothing-at-first", "rewrites-slices-in-place"),
    covers=("N28", "U4"),
)
def test_slices_stay_while_their_driver_is_restarted(scenario, driver, daemon, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod, seen = scenario.pod("pod").should_run(), driver.watch_pools(node)

    seconds = daemon.restart(node)

    assert pod.should_stay_running().seen_devices == pod.devices
    seen.should_stay_published(seconds)


@requirement(
    "LIFE-044",
    "A driver that restarts on unchanged hardware should publish nothing again: its pools should keep their generation, "
    "and their devices the order and content.",
    level=SHOULD,
    tier=DISRUPTIVE,
    needs=RESTART,
    given=("local",),
    source="API reference: ResourceSlice v1 resource.k8s.io, ResourcePool.generation: it changes whenever the definition of the pool does",
    mutants=("publishes-in-another-order",),
)
def test_a_restart_changes_no_slice(scenario, driver, daemon, node):
    before = driver.pool_content(node)

    daemon.restart(node)
    driver.should_keep_pools(before, node)

    # Not before: a driver may remove the device that the pod uses from its slice, which is not what this requirement is about.
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_recover()

    assert pod.seen_devices == pod.devices
