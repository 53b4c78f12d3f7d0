"""Pods without a claim never get the devices of claims. What they could get is shown by `probe.without` of the driver file."""

from testbed.conformance import E2E, MUST, NONE, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation"
DESIGN = "KEP-4381, section Managing resources"


@requirement(
    "EXCL-001",
    "A running pod without a claim must not get a device that is allocated to another pod's claim after it started.",
    level=MUST,
    tier=E2E,
    source=DESIGN,
    mutants=("leak-to-every-container",),
)
def test_a_pod_without_a_claim_runs_before(scenario, node):
    scenario.apply("exclusivity/pod.yaml", name="plain", node=node, variables=[])
    plain = scenario.pod("plain").should_run().container("workload")

    scenario.apply("basic/pod-on-a-node.yaml", node=node)
    owner = scenario.pod("pod").should_run().container("workload")

    assert owner.reachable_devices == owner.devices
    assert plain.reachable_devices == NONE


@requirement(
    "EXCL-002",
    "A pod without a claim must not get a device that is allocated to the claim of a running pod.",
    level=MUST,
    tier=E2E,
    source=DESIGN,
    mutants=("leak-while-claimed", "leak-to-every-container"),
)
def test_a_pod_without_a_claim_starts_meanwhile(scenario, node):
    scenario.apply("basic/pod-on-a-node.yaml", node=node)
    owner = scenario.pod("pod").should_run().container("workload")

    scenario.apply("exclusivity/pod.yaml", name="plain", node=node, variables=[])
    plain = scenario.pod("plain").should_run().container("workload")

    assert owner.reachable_devices == owner.devices
    assert plain.reachable_devices == NONE


@requirement(
    "EXCL-003",
    "A restarted container of a pod without a claim must not get a device that is allocated to the claim of another pod.",
    level=MUST,
    tier=E2E,
    source=DESIGN,
    mutants=("leak-to-restarted-containers", "leak-to-every-container"),
)
def test_a_container_without_a_claim_is_restarted(scenario, node):
    scenario.apply("basic/pod-on-a-node.yaml", node=node)
    owner = scenario.pod("pod").should_run().container("workload")
    scenario.apply("exclusivity/pod.yaml", name="plain", node=node, variables=[])
    plain = scenario.pod("plain").should_run().container("workload")
    assert plain.reachable_devices == NONE

    plain.restart()

    assert owner.reachable_devices == owner.devices
    assert plain.reachable_devices == NONE


@requirement(
    "EXCL-004",
    "A pod without a claim that sets the variables of another pod's claim must be refused, or must not get the device of that claim.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    given=("unforgeable",),
    mutants=("leak-to-forged-environment", "leak-to-forged-claims"),
)
def test_a_pod_forges_the_environment_of_a_claim(scenario, node):
    scenario.apply("basic/pod-on-a-node.yaml", node=node)
    owner = scenario.pod("pod").should_run().container("workload")
    scenario.apply("exclusivity/pod.yaml", name="plain", node=node, variables=[])
    plain = scenario.pod("plain").should_run().container("workload")

    same, unknown = owner.variables_beside(plain), owner.variables_beside(plain, of_unknown_claim=True)
    scenario.apply("exclusivity/pod.yaml", name="forger", node=node, variables=same)
    scenario.apply("exclusivity/pod.yaml", name="other", node=node, variables=unknown)
    forger = scenario.pod("forger").should_run_or_be_refused()
    other = scenario.pod("other").should_run_or_be_refused()

    assert owner.reachable_devices == owner.devices
    assert forger.reachable_devices == NONE
    assert other.reachable_devices == NONE


@requirement(
    "EXCL-005",
    "If all devices of a node are allocated to claims, a pod without a claim must be refused, or must not get any of them.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source=DESIGN,
    given=("local", "few"),
    mutants=("leak-when-all-are-claimed", "leak-to-every-container"),
    counts=("all",),
)
def test_all_devices_of_a_node_are_claimed(scenario):
    scenario.apply("exclusivity/all.yaml")
    owner = scenario.pod("pod").should_run().container("workload")

    scenario.apply("exclusivity/pod.yaml", name="plain", node=owner.pod.node, variables=[])
    plain = scenario.pod("plain").should_run_or_be_refused()

    assert owner.reachable_devices == owner.devices
    assert plain.reachable_devices == NONE


@requirement(
    "EXCL-006",
    "When a container with a claim is restarted, pods without a claim must not get its device, neither running pods nor new ones.",
    level=MUST,
    tier=E2E,
    source=DESIGN,
    mutants=("leak-after-restarts-of-owners", "leak-to-every-container"),
)
def test_a_container_with_a_claim_is_restarted(scenario, node):
    scenario.apply("exclusivity/pod.yaml", name="plain", node=node, variables=[])
    plain = scenario.pod("plain").should_run().container("workload")
    scenario.apply("basic/pod-on-a-node.yaml", node=node)
    owner = scenario.pod("pod").should_run().container("workload").restart()

    scenario.apply("exclusivity/pod.yaml", name="later", node=node, variables=[])
    later = scenario.pod("later").should_run_or_be_refused()

    assert owner.reachable_devices == owner.devices
    assert plain.reachable_devices == NONE
    assert later.reachable_devices == NONE
