"""Pods with admin access to devices that other pods use."""

from testbed.conformance import CLUSTER, E2E, MUST, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section Admin access"
KEP = "KEP-5018, DRA AdminAccess for ResourceClaims and ResourceClaimTemplates"


@requirement(
    "ADMIN-010",
    "A pod with admin access to a device must run, and its container must see that device.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("admin-access",),
    gates=("DRAAdminAccess",),
    mutants=(
        "no-env",
        "no-env-for-administrators",
        "refuse-administrators",
    ),
)
def test_a_monitor_sees_a_device(admin_scenario):
    admin_scenario.apply("admin_access/monitor-of-one-device.yaml")
    monitor = admin_scenario.pod("monitor").should_run()

    assert monitor.seen_devices == monitor.devices


@requirement(
    "ADMIN-011",
    "The scheduler must set adminAccess in the allocation result of each device that was requested with admin access.",
    level=MUST,
    tier=E2E,
    source="API reference: ResourceClaim v1 resource.k8s.io, DeviceRequestAllocationResult.adminAccess",
    features=("admin-access",),
    gates=("DRAAdminAccess",),
    about=CLUSTER,
    mutants=("admin-access-dropped",),
    counts=(1,),
)
def test_the_allocation_records_admin_access(admin_scenario):
    admin_scenario.apply("admin_access/monitor-of-one-device.yaml")
    (result,) = admin_scenario.pod("monitor").should_be_scheduled().claims["devices"].allocation_results

    assert result.get("adminAccess") is True


@requirement(
    "ADMIN-012",
    "A pod with admin access must see a device that another pod uses, and the other pod must still see it.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    features=("admin-access",),
    gates=("DRAAdminAccess",),
    given=("few",),
    covers=("G9",),
    mutants=(
        "admin-takes-device",
        "no-env",
        "no-env-for-administrators",
        "refuse-administrators",
    ),
    counts=("all",),
)
def test_a_monitor_sees_the_device_of_a_user(scenario, admin_scenario, driver):
    scenario.apply("admin_access/user.yaml")
    user = scenario.pod("user").should_run()
    used = driver.published_while_in_use(user.devices)

    admin_scenario.apply("admin_access/monitor.yaml", node=user.node)
    monitor = admin_scenario.pod("monitor").should_run()

    assert user.seen_devices == used
    assert used <= monitor.seen_devices


@requirement(
    "ADMIN-013",
    "A pod with admin access must run and see its devices even if every device is allocated to other pods.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=KEP,
    features=("admin-access",),
    gates=("DRAAdminAccess",),
    given=("local", "few", "unshared"),
    covers=("G9",),
    mutants=("admin-takes-device",),
    counts=("all",),
)
def test_a_monitor_runs_when_all_devices_are_allocated(scenario, admin_scenario, nodes, node, driver):
    scenario.apply("basic/everything.yaml")
    hoarders = scenario.daemonset("hoarder").pods_on(nodes).should_run()
    assert driver.published_while_in_use(hoarders.all_devices)

    admin_scenario.apply("admin_access/monitor.yaml", node=node)
    monitor = admin_scenario.pod("monitor").should_run()

    assert monitor.seen_devices == monitor.devices


@requirement(
    "ADMIN-014",
    "While pods with admin access use all devices, other pods must still be able to get and see every device.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=KEP,
    features=("admin-access",),
    gates=("DRAAdminAccess",),
    given=("local", "few", "one-class"),
    covers=("G9",),
    mutants=("admin-takes-device",),
    counts=("all",),
)
def test_a_monitor_does_not_reserve_devices(scenario, admin_scenario, nodes, driver):
    admin_scenario.apply("admin_access/daemonset.yaml")
    admin_scenario.daemonset("monitor").pods_on(nodes).should_run()

    scenario.apply("basic/everything.yaml")
    users = scenario.daemonset("hoarder").pods_on(nodes).should_run()

    assert users.seen_devices == users.devices
    assert users.all_devices == driver.devices


@requirement(
    "ADMIN-015",
    "Several pods with admin access to the same devices must all see them at the same time.",
    level=MUST,
    tier=E2E,
    source=KEP,
    features=("admin-access",),
    gates=("DRAAdminAccess",),
    given=("few",),
    covers=("G9",),
    mutants=("admin-takes-device", "first-device-only"),
    counts=("all",),
)
def test_several_monitors_see_the_same_devices(admin_scenario, node):
    admin_scenario.apply("admin_access/three-monitors.yaml", node=node)
    first, second, third = admin_scenario.pods("first", "second", "third").should_run()

    assert first.seen_devices == second.seen_devices == third.seen_devices == first.devices


@requirement(
    "ADMIN-016",
    "A DaemonSet pod with admin access to all devices must see every device that the driver publishes for its node.",
    level=MUST,
    tier=E2E,
    exclusive=True,  # a driver may remove the devices that other tests use from its slices
    source=DOCS,
    features=("admin-access",),
    gates=("DRAAdminAccess",),
    given=("few", "one-class"),
    covers=("AA2",),
    mutants=(
        "first-device-only",
        "no-env",
        "no-env-for-administrators",
    ),
    counts=("all",),
)
def test_a_daemonset_sees_every_device_of_its_node(admin_scenario, nodes, driver):
    admin_scenario.apply("admin_access/daemonset.yaml")
    monitors = admin_scenario.daemonset("monitor").pods_on(nodes).should_run()

    assert monitors.seen_devices == monitors.devices
    assert monitors.all_devices == driver.devices


@requirement(
    "ADMIN-017",
    "When a pod with admin access ends, a pod that uses the same device must keep running and see it after a container restart.",
    level=MUST,
    tier=E2E,
    source=KEP,
    features=("admin-access",),
    gates=("DRAAdminAccess",),
    given=("few",),
    covers=("G9",),
    mutants=("unprepare-forgets-the-device", "cdi-file-is-lost"),
    counts=("all",),
)
def test_deleting_a_monitor_does_not_disturb_a_user(scenario, admin_scenario):
    scenario.apply("admin_access/user.yaml")
    user = scenario.pod("user").should_run()
    admin_scenario.apply("admin_access/monitor.yaml", node=user.node)

    admin_scenario.pod("monitor").should_run().delete().should_be_gone()

    user.should_stay_running()
    assert user.container("workload").restart().seen_devices == user.devices


@requirement(
    "ADMIN-018",
    "When the pod that uses a device ends, a pod with admin access to it must keep running and see it after a container restart.",
    level=MUST,
    tier=E2E,
    source=KEP,
    features=("admin-access",),
    gates=("DRAAdminAccess",),
    given=("few",),
    covers=("G9",),
    mutants=("admin-takes-device", "unprepare-forgets-the-device"),
    counts=("all",),
)
def test_deleting_a_user_does_not_disturb_a_monitor(scenario, admin_scenario):
    scenario.apply("admin_access/user.yaml")
    user = scenario.pod("user").should_run()
    admin_scenario.apply("admin_access/monitor.yaml", node=user.node)
    monitor = admin_scenario.pod("monitor").should_run()

    user.delete().should_be_gone()

    assert monitor.should_stay_running().container("monitor").restarts == 0
    assert monitor.container("monitor").restart().seen_devices == monitor.devices
