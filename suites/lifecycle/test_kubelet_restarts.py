"""Restarts of the kubelet before, during and after prepare and unprepare."""

from testbed.conformance import DISRUPTIVE, MUST, Capability, requirement

CALLS = "KEP-4381, section Communication between kubelet and kubelet plugin"
SLICES = "kubelet: pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go, which deletes the ResourceSlices of its node when it starts"
KUBELET = (Capability.RESTART_KUBELET,)
BOTH = (Capability.RESTART_KUBELET, Capability.CHANGE_DRIVER)


@requirement(
    "LIFE-003",
    "When a restarted kubelet has deleted the ResourceSlices of its node, the driver must publish the same devices again. "
    "Running pods must not be affected.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=KUBELET,
    given=("local", "one-class"),
    source=SLICES,
    mutants=("deleted-slices-stay-away", "never-heal-slices"),
    covers=("N24",),
)
def test_deleted_slices_are_published_again(scenario, driver, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()
    devices, slices = driver.devices_on(node), driver.slices_on(node)

    node.restart_kubelet()
    driver.should_replace_slices(slices, node)

    assert driver.devices_on(node) == devices
    container = pod.should_stay_running().container("workload")
    assert (container.seen_devices, container.restarts) == (pod.devices, 0)


@requirement(
    "LIFE-001",
    "A pod must keep running with its device while the kubelet restarts, and a container restarted afterwards must see the device.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=KUBELET,
    source=CALLS,
    mutants=("cdi-file-is-lost",),
)
def test_a_pod_runs_while_its_kubelet_is_restarted(scenario, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()

    node.restart_kubelet()
    container = pod.should_stay_running().container("workload")

    assert container.restarts == 0
    assert container.restart().seen_devices == pod.devices


@requirement(
    "LIFE-002",
    "The driver must register again with a restarted kubelet, so that new pods on the node run and see their devices.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=KUBELET,
    source="KEP-4381, section Communication between kubelet and kubelet plugin",
    mutants=("registers-once",),
    covers=("N1",),
)
def test_a_new_pod_runs_after_the_kubelet_was_restarted(scenario, node):
    node.restart_kubelet()
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_recover()

    assert pod.seen_devices == pod.devices


@requirement(
    "LIFE-009",
    "When a restarted kubelet has deleted the ResourceSlices of its node, "
    "the driver must not remove or replace its slices for other nodes.",
    level=MUST,
    tier=DISRUPTIVE,
    nodes=2,
    needs=KUBELET,
    given=("local",),
    source=SLICES,
    mutants=("publishes-again-and-again",),
    covers=("N24",),
)
def test_slices_of_other_nodes_stay(scenario, driver, node, nodes):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()
    slices, seen = driver.slices_on(node), driver.watch_pools(max(nodes))

    node.restart_kubelet()
    driver.should_replace_slices(slices, node)

    assert pod.should_stay_running().seen_devices == pod.devices
    assert seen.replaced_slices == ()
    assert seen.lost_devices == ()


@requirement(
    "LIFE-004",
    "A pod that was scheduled while its kubelet was stopped must run and see its device when the kubelet is back.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=KUBELET,
    source=CALLS,
    mutants=("registers-once",),
    covers=("N5",),
)
def test_a_pod_is_created_while_the_kubelet_is_away(scenario, node):
    node.stop_kubelet()
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    scenario.claim("my-device").should_be_allocated()
    node.start_kubelet()
    pod = scenario.pod("pod").should_recover()

    assert pod.seen_devices == pod.devices


@requirement(
    "LIFE-005",
    "A pod that was deleted while its kubelet was stopped must end when the kubelet is back, and the next pod must get and see the device.",
    level=MUST,
    tier=DISRUPTIVE,
    exclusive=True,
    needs=KUBELET,
    source=CALLS,
    features=("identity",),
    given=("local", "one-class"),
    mutants=("unprepare-fails",),
    covers=("N12",),
    counts=(1,),
)
def test_a_pod_is_deleted_while_the_kubelet_is_away(scenario, driver, node):
    device = max(driver.devices_on(node))
    wanted = driver.identity(device)
    scenario.apply("basic/chosen-device.yaml", name="first", wanted=wanted)
    pod = scenario.pod("first").should_run()

    node.stop_kubelet()
    pod.delete()
    node.start_kubelet()
    pod.should_be_gone()
    scenario.apply("basic/chosen-device.yaml", name="next", wanted=wanted)

    assert scenario.pod("next").should_recover().seen_devices == {device}


@requirement(
    "LIFE-006",
    "When a restarted kubelet asks for a prepared claim again, for another pod, the driver must prepare it with the same result.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=KUBELET,
    source="KEP-4381, section NodePrepareResource: the call must be idempotent",
    features=("shared-claims",),
    mutants=("refuses-what-is-prepared", "prepare-twice-differently"),
    covers=("G13",),
)
def test_a_claim_is_prepared_again_for_a_second_pod(scenario, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    first = scenario.pod("pod").should_run()

    node.restart_kubelet()
    scenario.apply("basic/second-pod.yaml")
    second = scenario.pod("second").should_recover()

    assert second.seen_devices == first.seen_devices == scenario.claim("my-device").devices


@requirement(
    "LIFE-007",
    "A pod whose claim could not be prepared before a kubelet restart must run and see its device once the driver is back.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=BOTH,
    source=CALLS,
    mutants=("leaves-its-lock-behind",),
    covers=("N9",),
)
def test_the_kubelet_is_restarted_while_it_waits_for_prepare(scenario, daemon, node):
    daemon.stop_on(node)
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_wait_for_its_driver()

    node.restart_kubelet()
    daemon.start_again()
    pod.should_recover()

    assert pod.seen_devices == pod.devices


@requirement(
    "LIFE-008",
    "A pod whose claim could not be unprepared before a kubelet restart must end once the driver is "
    "back, and the next pod must get and see the device.",
    level=MUST,
    tier=DISRUPTIVE,
    exclusive=True,
    needs=BOTH,
    source=CALLS,
    features=("identity",),
    given=("local", "one-class"),
    mutants=("unprepares-only-its-own",),
    covers=("N10", "N12"),
    counts=(1,),
)
def test_the_kubelet_is_restarted_while_it_waits_for_unprepare(scenario, driver, daemon, node):
    device = max(driver.devices_on(node))
    wanted = driver.identity(device)
    scenario.apply("basic/chosen-device.yaml", name="first", wanted=wanted)
    pod = scenario.pod("first").should_run()

    daemon.stop_on(node)
    pod.delete().should_stay_terminating()
    node.restart_kubelet()
    daemon.start_again()
    pod.should_be_gone()
    scenario.apply("basic/chosen-device.yaml", name="next", wanted=wanted)

    assert scenario.pod("next").should_recover().seen_devices == {device}
