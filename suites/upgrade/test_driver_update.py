"""Updates of the driver while pods use its devices."""

from testbed.conformance import DISRUPTIVE, MUST, SHOULD, Capability, requirement

UPDATE = (
    "Kubernetes documentation: Good practices for Dynamic Resource Allocation as a Cluster Admin, "
    "section DRA driver deployment and maintenance"
)
NEEDED = (Capability.CHANGE_DRIVER,)


@requirement(
    "UPGRADE-001",
    "A pod must keep running with its device while the driver is updated, and a container restarted afterwards must see the device.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=NEEDED,
    source=UPDATE,
    mutants=("starts-clean",),
    covers=("U1",),
)
def test_a_pod_runs_while_its_driver_is_updated(scenario, daemon, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()

    daemon.update()
    container = pod.should_stay_running().container("workload")

    assert container.restarts == 0
    assert container.restart().seen_devices == pod.devices


@requirement(
    "UPGRADE-002",
    "The updated driver must unprepare claims that the old version prepared. "
    "The pod must end, and the next pod must get and see the device.",
    level=MUST,
    tier=DISRUPTIVE,
    exclusive=True,
    needs=NEEDED,
    source=UPDATE,
    features=("identity",),
    given=("local", "one-class"),
    mutants=("unprepares-only-its-own",),
    covers=("U1", "G12"),
    counts=(1,),
)
def test_a_claim_prepared_by_the_old_driver_is_unprepared_by_the_new_one(scenario, driver, daemon, node):
    device = max(driver.devices_on(node))
    wanted = driver.identity(device)
    scenario.apply("basic/chosen-device.yaml", name="first", wanted=wanted)
    pod = scenario.pod("first").should_run()

    daemon.update()
    pod.delete().should_be_gone()
    scenario.apply("basic/chosen-device.yaml", name="next", wanted=wanted)

    assert scenario.pod("next").should_run().seen_devices == {device}


@requirement(
    "UPGRADE-003",
    "When a restarted kubelet asks for a claim that the old version prepared, the updated "
    "driver must prepare it again with the same result.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=(*NEEDED, Capability.RESTART_KUBELET),
    source=UPDATE,
    features=("shared-claims",),
    mutants=("refuses-what-is-prepared",),
)
def test_a_claim_prepared_by_the_old_driver_is_prepared_again_by_the_new_one(scenario, daemon, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    first = scenario.pod("pod").should_run()

    daemon.update()
    node.restart_kubelet()
    scenario.apply("basic/second-pod.yaml")
    second = scenario.pod("second").should_recover()

    assert second.seen_devices == first.seen_devices == scenario.claim("my-device").devices


@requirement(
    "UPGRADE-004",
    "Pods that are created while the driver is updated must run and see their devices, on every node.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=NEEDED,
    given=("local",),
    source=UPDATE,
    mutants=("leaves-its-lock-behind",),
    covers=("U1",),
)
def test_pods_are_created_while_their_driver_is_updated(scenario, daemon, nodes):
    old = daemon.start_update()
    scenario.apply("basic/one-pod-per-node.yaml")
    daemon.should_be_updated(old)
    pods = scenario.daemonset("one-per-node").pods_on(nodes).should_recover()

    assert pods.seen_devices == pods.devices


@requirement(
    "UPGRADE-005",
    "The driver should not remove or replace ResourceSlices during an update, and its devices should stay published all the time.",
    level=SHOULD,
    tier=DISRUPTIVE,
    needs=NEEDED,
    given=("local",),
    source=UPDATE,
    mutants=("publishes-from-scratch", "publishes-nothing-at-first", "rewrites-slices-in-place"),
    covers=("U1",),
)
def test_the_slices_stay_while_the_driver_is_updated(scenario, driver, daemon, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod, seen = scenario.pod("pod").should_run(), driver.watch_pools(node)

    seconds = daemon.update()

    container = pod.should_stay_running().container("workload")
    assert (container.seen_devices, container.restarts) == (pod.devices, 0)
    seen.should_stay_published(seconds)
