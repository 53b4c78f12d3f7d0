"""The kubelet's metrics about claims and about calls of the driver."""

from testbed.conformance import CLUSTER, E2E, MUST, Capability, requirement

DOCS = "Kubernetes documentation: Kubernetes Metrics Reference, dra_resource_claims_in_use and dra_grpc_operations_duration_seconds"


@requirement(
    "MONITOR-010",
    "The kubelet's metric dra_resource_claims_in_use must count a claim of the driver while it is prepared, and not afterwards.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    needs=(Capability.KUBELET_METRICS,),
    source=DOCS,
    covers=("N19", "G19"),
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
)
def test_claims_in_use_are_counted(scenario, kubelets, node):
    before = kubelets.claims_in_use(node)
    scenario.apply("basic/pod-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()
    assert kubelets.claims_in_use(node) == before + 1

    pod.delete().should_be_gone()

    kubelets.should_have_claims_in_use(node, before)


@requirement(
    "MONITOR-011",
    "The kubelet's metric dra_resource_claims_in_use must count a shared claim once, until the last pod that uses it has ended.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    needs=(Capability.KUBELET_METRICS,),
    source=DOCS,
    features=("shared-claims",),
    covers=("N19",),
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
)
def test_a_shared_claim_is_counted_once(scenario, kubelets, node):
    before = kubelets.claims_in_use(node)
    scenario.apply("monitor/shared-on-a-node.yaml", node=node)
    first, second = scenario.pods("first", "second").should_run()
    assert kubelets.claims_in_use(node) == before + 1

    first.delete().should_be_gone()
    assert kubelets.claims_in_use(node) == before + 1

    second.delete().should_be_gone()

    kubelets.should_have_claims_in_use(node, before)


@requirement(
    "MONITOR-012",
    "For a pod with a claim, the kubelet's metrics must count one successful call each of NodePrepareResources and NodeUnprepareResources.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    needs=(Capability.KUBELET_METRICS,),
    source=DOCS,
    covers=("G19",),
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
)
def test_calls_are_counted(scenario, kubelets, node):
    prepared, unprepared = kubelets.calls(node, "NodePrepareResources"), kubelets.calls(node, "NodeUnprepareResources")
    scenario.apply("basic/pod-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()
    pod.delete().should_be_gone()

    assert kubelets.calls(node, "NodePrepareResources") == prepared + 1
    assert kubelets.calls(node, "NodeUnprepareResources") == unprepared + 1


@requirement(
    "MONITOR-013",
    "The kubelet must call the driver once to prepare a shared claim for the first pod, and once to unprepare it after the last pod.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    needs=(Capability.KUBELET_METRICS,),
    source="KEP-4381, section Managing resources: a claim is unprepared for the last pod on the node that uses it",
    features=("shared-claims",),
    covers=("G19",),
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
)
def test_calls_for_a_shared_claim_are_counted(scenario, kubelets, node):
    prepared, unprepared = kubelets.calls(node, "NodePrepareResources"), kubelets.calls(node, "NodeUnprepareResources")
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    first = scenario.pod("pod").should_run()
    scenario.apply("monitor/second-on-a-node.yaml", node=node)
    second = scenario.pod("second").should_run()
    assert kubelets.calls(node, "NodePrepareResources") == prepared + 1

    first.delete().should_be_gone()
    assert kubelets.calls(node, "NodeUnprepareResources") == unprepared

    second.delete().should_be_gone()
    assert kubelets.calls(node, "NodeUnprepareResources") == unprepared + 1
